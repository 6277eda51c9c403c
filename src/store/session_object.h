// One change of a session as an object: all of it, or what a turn has added. The bytes of the objects behind one
// another are those of a session's file (engine/session_file.h), which checks them. Pure; any thread.
//
//   at  bytes
//    0      8  magic, "ChasquiC"
//    8      4  version of this layout
//   12      4  0: the session is whole here; 1: a turn
//   16     16  of a turn: which object it follows
//   32      …  bytes of the session's file
//
// Names are ROOT/sessions/ID/LEASE-NUMBER-WRITER in hexadecimal digits, so that they sort in the order in which they
// were written, and no two processes ever write one name. Numbers are little-endian.
#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace chasqui::store {

struct ObjectNumber {
  std::uint64_t lease = 0;  // 0: none
  std::uint32_t number = 0;
  std::uint32_t writer = 0;  // by chance, one for each process
  auto operator<=>(const ObjectNumber&) const = default;
};

std::string session_folder(const std::string& root, const std::string& id);
std::string kv_folder(const std::string& root, const std::string& id);
std::string answer_folder(const std::string& root, const std::string& id);
std::string object_name(const std::string& folder, ObjectNumber number);
// By the last part of its name. Nothing: it is another one's.
std::optional<ObjectNumber> number_of(std::string_view name);

// Refers to the bytes that it was read from.
struct SessionObject {
  ObjectNumber follows{};  // without a lease: the session is whole here
  std::span<const std::byte> bytes;

  bool is_whole() const { return follows.lease == 0; }
};

std::vector<std::byte> write_object(const SessionObject& object);
// invalid_request: it is none.
Result<SessionObject> read_object(std::span<const std::byte> bytes);

}  // namespace chasqui::store
