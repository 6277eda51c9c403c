// Numbers and texts as bytes, and back, for recordings. What has several parts lists them once, for both directions:
//
//   template <class Io, class Parcel>
//   void pass(Io& io, Parcel& parcel) { io(parcel.number, parcel.weight, parcel.sender); }
//
// Numbers take as many bytes as they need. A ByteReader never reads beyond its end: what is not there, or does not fit,
// is zero, and failed() says so. Pure; one thread.
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/clock.h"
#include "core/types.h"

namespace chasqui {

class ByteWriter {
 public:
  // At the end of `out`, which outlives the writer.
  explicit ByteWriter(std::string& out) : out_(out) {}

  template <class... Values>
  void operator()(const Values&... values) {
    (put(values), ...);
  }
  // One of so many enumerators.
  template <class Enum>
  void choice(const Enum& value, std::size_t /*count*/) {
    number(static_cast<std::uint64_t>(value));
  }
  // Tokens or stand-ins for them, four bytes each.
  void tokens(const std::vector<Token>& tokens) {
    number(tokens.size());
    for (const Token token : tokens) fixed(static_cast<std::uint32_t>(token), 4);
  }
  // The figures of a table, row by row, each as the difference from the one above it.
  void table(std::span<const std::int64_t> figures, std::size_t columns);

  void number(std::uint64_t value) {
    for (; value >= 0x80; value >>= 7) out_.push_back(static_cast<char>(value | 0x80));
    out_.push_back(static_cast<char>(value));
  }
  void signed_number(std::int64_t value) {
    number((static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63));
  }
  // Least significant byte first.
  void fixed(std::uint64_t value, int bytes) {
    for (int i = 0; i < bytes; ++i) out_.push_back(static_cast<char>(value >> (8 * i)));
  }

 private:
  template <std::integral Integer>
  void put(Integer value) {
    std::is_signed_v<Integer> ? signed_number(static_cast<std::int64_t>(value))
                              : number(static_cast<std::uint64_t>(value));
  }
  void put(double value) { fixed(std::bit_cast<std::uint64_t>(value), 8); }
  void put(Duration value) { signed_number(value.count()); }
  void put(TimePoint value) { signed_number(value.time_since_epoch().count()); }
  void put(RequestId id) { number(id.value); }
  void put(SlotId id) { signed_number(id.value); }
  void put(const std::string& text) {
    number(text.size());
    out_ += text;
  }
  template <class First, class Second>
  void put(const std::pair<First, Second>& both) {
    put(both.first);
    put(both.second);
  }
  template <class Value>
  void put(const std::vector<Value>& values) {
    number(values.size());
    for (const Value& value : values) put(value);
  }

  std::string& out_;
};

class ByteReader {
 public:
  explicit ByteReader(std::string_view bytes) : left_(bytes) {}

  template <class... Values>
  void operator()(Values&... values) {
    (get(values), ...);
  }
  template <class Enum>
  void choice(Enum& value, std::size_t count) {
    const std::uint64_t found = number();
    if (found >= count) return fail();
    value = static_cast<Enum>(found);
  }
  void tokens(std::vector<Token>& tokens);
  // In place of what `figures` held.
  void table(std::vector<std::int64_t>& figures, std::size_t columns);

  std::uint64_t number();
  std::int64_t signed_number() {
    const std::uint64_t value = number();
    return static_cast<std::int64_t>(value >> 1) ^ -static_cast<std::int64_t>(value & 1);
  }
  std::uint64_t fixed(int bytes);
  std::string_view bytes(std::uint64_t count);

  bool failed() const { return failed_; }
  bool at_end() const { return left_.empty(); }
  void fail() {
    failed_ = true;
    left_ = {};
  }

 private:
  template <std::integral Integer>
  void get(Integer& value) {
    if constexpr (std::is_signed_v<Integer>) {
      const std::int64_t found = signed_number();
      std::in_range<Integer>(found) ? void(value = static_cast<Integer>(found)) : fail();
    } else {
      const std::uint64_t found = number();
      std::in_range<Integer>(found) ? void(value = static_cast<Integer>(found)) : fail();
    }
  }
  void get(bool& value) {
    const std::uint64_t found = number();
    found <= 1 ? void(value = found != 0) : fail();
  }
  void get(double& value) { value = std::bit_cast<double>(fixed(8)); }
  void get(Duration& value) { value = Duration(signed_number()); }
  void get(TimePoint& value) { value = TimePoint(Duration(signed_number())); }
  void get(RequestId& id) { id.value = number(); }
  void get(SlotId& id) { get(id.value); }
  void get(std::string& text) { text = bytes(number()); }
  template <class First, class Second>
  void get(std::pair<First, Second>& both) {
    get(both.first);
    get(both.second);
  }
  template <class Value>
  void get(std::vector<Value>& values) {
    values.clear();
    for (std::uint64_t count = number(); count > 0 && !failed_; --count) get(values.emplace_back());
  }

  std::string_view left_;
  bool failed_ = false;
};

}  // namespace chasqui
