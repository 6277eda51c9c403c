#include "base/random_id.h"

#include <random>

#include "base/random_bits.h"

namespace chasqui {

std::string random_id(std::string_view prefix) {
  constexpr std::string_view kLetters = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
  constexpr int kLength = 32;
  std::uniform_int_distribution<std::size_t> letter(0, kLetters.size() - 1);
  RandomBits bits;
  std::string id(prefix);
  for (int i = 0; i < kLength; ++i) id += kLetters[letter(bits)];
  return id;
}

}  // namespace chasqui
