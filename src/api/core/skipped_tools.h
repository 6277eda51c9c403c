// Tools of types that no model here can call: those that a provider runs itself (web_search), and kinds of other APIs
// (custom, namespace, local_shell). As in llama-server the model is not shown them, and the client is told in the
// header X-Chasqui-Warning; so it is of keywords of a schema that an answer may not keep to. SkippedTools belongs to
// the service, loop thread only; the functions are pure, any thread.
#pragma once

#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <boost/json.hpp>

#include "base/limits.h"

namespace chasqui {

// Whether `tool` says that it is of another type than `served`; its type is noted in `skipped` then, once.
bool skip_tool(const boost::json::value& tool, std::string_view served, std::vector<std::string>& skipped);

// What the header says; empty where nothing was skipped.
std::string skipped_warning(const std::vector<std::string>& types);
// The same of keywords, each with the JSON pointer of its schema.
std::string dropped_warning(const std::vector<std::string>& keywords);

// Logs each type and each keyword once, and no more of them than there is room for.
class SkippedTools {
 public:
  void log_new(const std::vector<std::string>& types);
  void log_dropped(const std::vector<std::string>& keywords);

 private:
  std::set<std::string, std::less<>> logged_;    // kCountLimit<"skipped_types"> at most
  std::set<std::string, std::less<>> keywords_;  // as many
};

}  // namespace chasqui
