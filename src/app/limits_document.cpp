#include "app/limits_document.h"

#include <CLI/CLI.hpp>

#include "base/json_writer.h"
#include "base/limits.h"

namespace chasqui {
namespace {

constexpr const char* kLimitsHead = R"(# Limits

Nothing that a client can ask for is without bounds. These are the limits that a client or an operator meets: what they
are by default, what happens where one is reached, and the metric that shows it. The code reads its defaults from this
table (`src/base/limit_table.h`); what a single field may be is in the [API](api.md). `chasqui config --limits` prints
the table with the settings that it is given (`--json` for programs), `GET /props` has what is in force as `limits`.

429 means your quota, 503 this node; both carry `Retry-After` where the queue can be forecast. A refusal whose status
ends the connection says so by `Connection: close`.

The bodies of requests have at most `bodies_bytes` together. While a body is read (a tree of JSON, messages, a
prompt) it takes at most eight times its bytes and 16 MiB where it is refused or its prompt is short, and about
ten times where the template renders one large text. Two bodies are read at a time, so all of them together take
about 1.2 GiB at most. What large bodies have taken goes back to the system within five seconds.

| name | default | of | when it is reached | set by | seen in |
|---|---|---|---|---|---|
)";

// 32 MiB rather than 33554432; only where nothing is lost.
std::string in_words(const Limit& limit) {
  if (!limit.depends.empty()) return std::string(limit.depends);
  if (limit.unit == LimitUnit::time) return std::to_string(limit.standard / 1000) + " s";
  if (limit.unit == LimitUnit::count) return std::to_string(limit.standard);
  constexpr std::int64_t kKiB = 1024;
  const std::int64_t kib = limit.standard / kKiB;
  if (limit.standard % kKiB != 0) return std::to_string(limit.standard) + " bytes";
  return kib % kKiB == 0 ? std::to_string(kib / kKiB) + " MiB" : std::to_string(kib) + " KiB";
}

// What was configured instead of the default; empty: nothing.
std::string setting_of(const Limit& limit, const CLI::App& command, const Settings& settings) {
  if (limit.flag.empty()) return {};
  const CLI::Option* option = command.get_option_no_throw(std::string(limit.flag));
  if (option == nullptr || !settings.origins.contains(option->get_lnames().front())) return {};
  std::string out;
  for (const std::string& value : option->results()) out += (out.empty() ? "" : ",") + value;
  return out;
}

std::string quoted(std::string_view name) { return name.empty() ? "" : '`' + std::string(name) + '`'; }

}  // namespace

std::string limits_document(const CLI::App& command, const Settings& settings) {
  std::string out = kLimitsHead;
  for (const Limit& limit : kLimits) {
    const std::string said = setting_of(limit, command, settings);
    const std::string value = said.empty() ? in_words(limit) : "**" + said + "**, not " + in_words(limit);
    out += "| " + quoted(limit.name) + " | " + value;
    for (const std::string& cell : {std::string(limit.of), std::string(limit.reached), quoted(limit.flag)}) {
      out += " | " + cell;
    }
    out += " | " + quoted(limit.metric) + " |\n";
  }
  return out;
}

std::string limits_json(const CLI::App& command, const Settings& settings) {
  std::string out;
  JsonWriter w(out);
  w.begin_object();
  for (const Limit& limit : kLimits) {
    w.begin_object(limit.name);
    w.field("default", in_words(limit));
    if (const std::string said = setting_of(limit, command, settings); !said.empty()) w.field("setting", said);
    w.field("of", limit.of);
    w.field("reached", limit.reached);
    if (!limit.flag.empty()) w.field("flag", limit.flag);
    if (!limit.metric.empty()) w.field("metric", limit.metric);
    w.end_object();
  }
  w.end_object();
  return out + "\n";
}

}  // namespace chasqui
