// The key file: who may come in, as whom, and how much of the service they get. Parsing only; pure, any thread. Keys
// leave this file as hashes.
//
//   KEY [name=alice] [class=interactive|standard|background] [weight=2] [in_flight=64] [admin=yes]
//   sha256:<64 hex digits> [the same options]
//
// Blank lines and lines that begin with # are skipped. Lines with one name are one tenant, and so have one weight and
// one in_flight, said on any of them; a line without a name is a tenant of its own.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "core/types.h"
#include "net/sha256.h"

namespace chasqui {

struct KeyLine {
  net::Sha256 hash{};
  std::string tenant;  // its name; for a key without one the hash in hexadecimal
  std::optional<ServiceClass> service_class;
  std::optional<double> weight;
  std::optional<std::size_t> in_flight;
  bool admin = false;  // may see what others do, and change what holds for all
};

// `plain` are keys without options, from the command line. Errors name file, line and field, and say what is allowed.
Result<std::vector<KeyLine>> parse_keys(const std::vector<std::string>& plain, const std::string& file_name,
                                        std::string_view file_text);

// A line of a file has a key itself, and not its hash.
bool has_plain_key(std::string_view file_text);

// The same as parse_keys() with the text of the file itself; an empty name reads none.
Result<std::vector<KeyLine>> read_keys(const std::vector<std::string>& plain, const std::string& file_name);

}  // namespace chasqui
