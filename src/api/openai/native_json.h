// The last object of an answer in llama-server's words: what its own routes answer with, and what its OpenAI routes add
// as `__verbose` where a request asks for that: the prompt as the model sees it and the answer before anything is read
// out of it. Pure writers; loop thread.
#pragma once

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "api/core/answer.h"
#include "api/core/served_model.h"
#include "model/tokenizer.h"

namespace chasqui {

class JsonWriter;

struct NativeHead {
  std::string model;
  std::shared_ptr<const Tokenizer> tokenizer;
  std::vector<RequestPtr> requests;
  std::vector<std::string> prompts;  // as text, of each of them
  bool stream = false;
  bool return_tokens = false;
  std::vector<std::string> shown;  // names and paths of the fields that are asked for; empty: all

  bool shows(std::string_view name) const;
};
// Takes as long as the prompts are; offload pool.
NativeHead native_head(const ServedModel& served, const std::vector<RequestPtr>& requests);

// `answer` is that of requests[index]; of a stream, whose text is told already, only its finished event.
// About how many bytes of the whole answer repeat what was asked for.
std::size_t native_repeated_bytes(const NativeHead& head);
void write_native_final(const NativeHead& head, const Collected& answer, std::size_t index, bool new_line,
                        std::string& out);

// `,"__verbose":{…}`, for the end of another object.
void append_verbose(const NativeHead& head, const Collected& answer, std::size_t index, bool new_line,
                    std::string& out);

void write_tokens(JsonWriter& json, const std::vector<Token>& tokens);

}  // namespace chasqui
