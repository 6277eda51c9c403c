// From a client's text to a valid request: tokenizes, applies the template, calls make_request. Slow for long prompts
// (about 1 ms for 4 KB), so it belongs in the offload pool. Any thread; `served` is only read.
#pragma once

#include <string_view>
#include <vector>

#include "api/body/fields.h"
#include "api/body/media_intake.h"
#include "api/body/prompt_forms.h"
#include "api/core/key_ring.h"
#include "api/core/served_model.h"
#include "base/limits.h"
#include "core/request.h"
#include "model/chat_template.h"
#include "model/reasoning_limit.h"

namespace chasqui {

// A draft with the server's defaults, and the caller's.
RequestDraft new_draft(const ServedModel& served, const Caller& caller);

// A chat with the server's defaults.
Chat new_chat(const RequestDefaults& defaults);
// Whether the model goes on with the chat's last message, where nothing is said about it.
bool goes_on_with_last(const RequestDefaults& defaults, const Chat& chat);
// Reads `messages`, `tools` and the template's switches. Mistakes are left in `fields`. `media` null: the model takes
// text alone.
Chat read_chat(Fields& fields, const RequestDefaults& defaults, const MediaReader* media);
// … the tools and switches alone.
void read_chat_switches(Fields& fields, Chat& chat);
// Errors say that `name` is at fault.
void set_reasoning_effort(Chat& chat, std::string_view effort, Fields& fields, std::string_view name);

// One message, where `path` is what errors call it.
std::optional<Error> read_message(const boost::json::value& value, const std::string& path, MediaIntake& media,
                                  ChatMessage& message);
// The arguments of a call, as JSON. Text that is none, as when the model was cut short, is told as {"arguments": text}:
// clients send such a call back with what was wrong about it.
std::string arguments_as_json(std::string_view text);
// An array of 1 to 4,096 of them in `name`; and of `tools`. Mistakes are left in `fields`.
std::vector<ChatMessage> read_messages(Fields& fields, std::string_view name, MediaIntake& media);
// `skipped` gets the types of tools that are left out, for they are no functions; null: those are refused.
std::vector<Tool> read_tools(Fields& fields, std::vector<std::string>* skipped);
// Whether the arguments of their calls are small enough, all together.
std::optional<Error> check_calls(const std::vector<ChatMessage>& messages);
// Refuses a chat before its template copies it several times, where it cannot fit. Counts what every template shows: of
// what an assistant has said some leave parts out.
Result<void> check_texts_fit(const ServedModel& served, const Chat& chat);

// What the draft's sampling needs of the model: tokens for the texts of logit_bias, grammar and samplers. Its prompt is
// there, or is going to be; errors are those of make_request(), too.
Result<void> prepare_sampling(const ServedModel& served, RequestDraft& draft,
                              const ReasoningLimit* reasoning = nullptr);
// prepare_sampling(), and then the request.
Result<RequestPtr> request_from_draft(const ServedModel& served, RequestDraft draft,
                                      const ReasoningLimit* reasoning = nullptr);
// `count` requests that differ in their seeds only.
Result<std::vector<RequestPtr>> requests_from_draft(const ServedModel& served, RequestDraft draft, std::int32_t count,
                                                    const ReasoningLimit* reasoning = nullptr);

// The same for each of some prompts, at most kRequestsMax altogether; those of one prompt follow each other.
constexpr std::size_t kRequestsMax = kSizeLimit<"requests">;
Result<std::vector<RequestPtr>> requests_of_prompts(const ServedModel& served, const RequestDraft& draft,
                                                    std::vector<MediaPrompt> prompts, std::int32_t each);

// The prompts of a completion: one in any form that read_media_prompt() takes, or an array of those. Errors name
// `prompt`.
Result<std::vector<MediaPrompt>> read_prompts(const ServedModel& served, const boost::json::value& prompt);

// Template → tokens and units.
Result<MediaPrompt> prompt_of_chat(const ServedModel& served, const Chat& chat);
// What a client says about how long the model may think.
struct ReasoningWish {
  std::optional<TokenCount> budget;  // tokens, then the reasoning is ended; none: no limit
  std::string message;               // … with this before its end
  bool control = false;              // it may be ended while it runs
};
// reasoning_budget and what else it is called.
ReasoningWish read_reasoning_budget(Fields& fields);

// A chat's requests, and how their answers are read; null: an answer is content as it stands.
struct ChatRequests {
  std::vector<RequestPtr> requests;
  AnswerFormatPtr format;
  ReasoningSwitchPtr reasoning_switch = {};  // without its id yet; null where the request may not end the reasoning
};
// Template → tokens → grammar → `count` requests that differ in their seeds only. What the draft has as its prompt
// already stands before the chat.
Result<ChatRequests> requests_from_chat(const ServedModel& served, const Chat& chat, RequestDraft draft,
                                        std::int32_t count = 1, const ReasoningWish& reasoning = {});
// A prompt as the completion routes take it: a string, or an array of token ids.
Result<RequestPtr> request_from_prompt(const ServedModel& served, const boost::json::value& prompt, RequestDraft draft);

}  // namespace chasqui
