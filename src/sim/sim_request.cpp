#include "sim/sim_request.h"

#include "base/error.h"

namespace chasqui {

SimRequest& SimRequestTable::take() {
  if (free_.empty()) {
    if ((size_ & (kChunk - 1)) == 0) chunks_.push_back(std::make_unique<SimRequest[]>(kChunk));
    CHECK(size_ < (1u << kPlaceBits), "bounded: too many requests live at once");
    free_.push_back(size_++);
  }
  const std::uint32_t place = free_.back();
  free_.pop_back();
  SimRequest& life = at(place);
  life = SimRequest{};
  life.place = place;
  return life;
}

void SimRequestTable::give_back(SimRequest& life) {
  CHECK(life.serial != 0, "a record is given back twice");
  life.serial = 0;
  life.accepted = false;
  life.request.reset();
  life.permit.release();
  free_.push_back(life.place);
}

}  // namespace chasqui
