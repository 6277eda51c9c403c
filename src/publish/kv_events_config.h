// What --kv-events and its kin say. Pure; any thread.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "base/error.h"

namespace chasqui::publish {

struct KvEventsConfig {
  std::string endpoint{};  // empty: nothing is published
  std::string replay{};    // empty: nothing is repeated. REQUIRES: there is one topic
  std::string topic{};     // with {model} in it, its name; empty: kv@HOST@{model}
  bool anywhere = false;   // addresses that other networks may reach
};

// In a topic.
constexpr std::string_view kModelPlace = "{model}";

// Whether this names an address of this machine that is to be listened at: "tcp://ADDRESS:PORT", "tcp://*:PORT",
// "ipc://PATH". False: it names a host that is connected to, which has to listen. Error: it is neither.
Result<bool> listens(const std::string& endpoint);

// What can be said of it without libzmq, for a server of so many models. Errors name the flag.
Result<void> check_kv_events(const KvEventsConfig& config, std::size_t models);

}  // namespace chasqui::publish
