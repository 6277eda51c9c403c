// The forms in which a client may give one prompt: text, token ids, both in one array, or, as llama-server's clients
// write it, {"prompt_string": text, "multimodal_data": [base64, …]}. Pure; slow for long prompts, so it belongs in the
// offload pool. Any thread.
#pragma once

#include <string>
#include <vector>

#include <boost/json.hpp>

#include "api/core/served_model.h"
#include "model/media_reader.h"
#include "model/tokenizer.h"

namespace chasqui {

// Refuses so many bytes of text where they cannot fit, whatever their tokens are.
Result<void> check_prompt_bytes(const ServedModel& served, std::size_t bytes);

// Refuses a text that cannot fit before the tokenizer has to read all of it.
Result<std::vector<Token>> tokenize_prompt(const ServedModel& served, std::string_view text);

// A text that has the reader's marker for each file. Errors of the files name `name`.
Result<MediaPrompt> read_media_text(const ServedModel& served, std::string_view text,
                                    const std::vector<MediaFilePtr>& files, const std::string& name);

// Token ids of the vocabulary.
Result<std::vector<Token>> read_tokens(const ServedModel& served, const boost::json::array& ids,
                                       const std::string& field);

// Whether `value` is one prompt rather than an array of several: an array that has a number in it is one.
bool is_one_prompt(const boost::json::value& value);

// The text of {"prompt_string": text}, or `value` itself. Refuses pictures and sound beside the text.
Result<const boost::json::value*> prompt_text(const boost::json::value& value, const std::string& name);

// Bytes of the texts among them.
std::size_t text_bytes(const boost::json::array& items);

// Texts and token ids, one behind the other: as many as the context has room for, however many bytes they have. Special
// tokens of the beginning are added where the first is a text.
Result<std::vector<Token>> tokenize_mixed(const ServedModel& served, const boost::json::array& items,
                                          const std::string& name, AddSpecial add, ParseSpecial parse);

// Errors name `name`.
Result<std::vector<Token>> read_prompt(const ServedModel& served, const boost::json::value& value,
                                       const std::string& name);

// What stands for a file in a prompt_string.
constexpr std::string_view kMediaMarker = "<__media__>";
// … with pictures and sounds.
Result<MediaPrompt> read_media_prompt(const ServedModel& served, const boost::json::value& value,
                                      const std::string& name);

}  // namespace chasqui
