#include "base/random_id.h"

#include <random>

namespace chasqui {

std::string random_id(std::string_view prefix) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kLength = 32;
  thread_local std::random_device device;  // getrandom(2) or the CPU's generator, never a seeded sequence
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  std::string id(prefix);
  for (int i = 0; i < kLength; ++i) id += kLetters[letter(device)];
  return id;
}

}  // namespace chasqui
