#include "sim/life.h"

#include "base/error.h"

namespace chasqui {

Life& LifeTable::take() {
  if (free_.empty()) {
    if ((size_ & (kChunk - 1)) == 0) chunks_.push_back(std::make_unique<Life[]>(kChunk));
    CHECK(size_ < (1u << kPlaceBits), "bounded: too many requests live at once");
    free_.push_back(size_++);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  Life& life = at(place);
  life = Life{};
  life.place = place;
  return life;
}

void LifeTable::give_back(Life& life) {
  CHECK(life.serial != 0, "a record is given back twice");
  life.serial = 0;
  life.accepted = false;
  life.request.reset();
  life.permit.release();
  free_.push_back(life.place);
}

}  // namespace chasqui
