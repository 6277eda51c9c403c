#include "base/random_bits.h"

#include <array>
#include <cstddef>
#include <utility>

#include <unistd.h>

#include "base/error.h"

namespace chasqui {
namespace {

struct Store {
  std::array<std::uint64_t, 32> bits{};  // 256 bytes: what getentropy() gives at most
  std::size_t used = 32;
};

}  // namespace

RandomBits::result_type RandomBits::operator()() const {
  thread_local Store store;
  if (store.used == store.bits.size()) {
    CHECK(::getentropy(store.bits.data(), sizeof store.bits) == 0, "the kernel gives no random numbers");
    store.used = 0;
  }
  // A number is not left behind in the memory of the process.
  return std::exchange(store.bits[store.used++], 0);
}

}  // namespace chasqui
