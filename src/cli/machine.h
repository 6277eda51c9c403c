// What this machine gives a process: memory, cores and limits, those of its control group included. Reads /proc and
// /sys; what is not told there is left out. Plain values; any thread.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace chasqui::cli {

struct Machine {
  std::uint64_t memory_bytes = 0;     // of the machine
  std::uint64_t available_bytes = 0;  // without swapping
  std::optional<std::uint64_t> group_limit_bytes;
  std::optional<std::uint64_t> group_used_bytes;  // see base/control_group.h
  std::optional<double> group_cores;              // that the group may use at most
  std::int32_t cores = 0;                         // that this process may run on
  std::optional<std::uint64_t> open_files;        // hard limit; none: no limit
  std::optional<std::uint64_t> locked_bytes;

  // What all that runs here may use together.
  std::uint64_t usable_bytes() const;
  // What a process started now could take, as far as anybody can tell.
  std::uint64_t free_bytes() const;
};

Machine look_at_machine();

// "MemAvailable:  123 kB" → bytes.
std::optional<std::uint64_t> find_meminfo(std::string_view text, std::string_view name);
// "2.5 GiB", "300 MiB", "12 KiB".
std::string bytes_in_words(std::uint64_t bytes);

}  // namespace chasqui::cli
