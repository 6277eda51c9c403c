// Turns a job into the bytes of its HTTP request. Constant after construction; single-threaded.
#pragma once

#include <string>
#include <string_view>

#include "bench/job_maker.h"
#include "bench/target.h"

namespace chasqui::bench {

enum class Api { chat, completions };

struct AskShape {
  Api api = Api::chat;
  std::string model;   // empty: not sent
  std::string key;     // for jobs that have none
  std::string fields;  // more members of the JSON body, `"temperature":0`; empty: none
  bool ignore_eos = false;
};

class AskWriter {
 public:
  AskWriter(const Target& target, AskShape shape) : target_(target), shape_(std::move(shape)) {}

  std::string request(const Job& job) const;
  std::string health_probe() const;

 private:
  std::string body(const Job& job) const;

  const Target target_;
  const AskShape shape_;
};

}  // namespace chasqui::bench
