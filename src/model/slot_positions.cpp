#include "model/slot_positions.h"

#include <cstring>

#include "base/error.h"

namespace chasqui {

TokenCount SlotPositions::position(TokenCount place) const {
  TokenCount position = place;
  for (const Unit& unit : units_) {
    if (unit.begin >= place) break;
    DCHECK(unit.end() <= place, "a place inside a picture has several positions");
    position -= unit.places - unit.advance;
  }
  return position;
}

TokenCount SlotPositions::places(TokenCount last_position) const {
  if (units_.empty() || last_position < 0) return last_position + 1;
  const Unit& last = units_.back();
  if (last_position < position(last.begin) + last.advance) return last.begin + last.read;
  return last_position + 1 + last.end() - position(last.end());
}

bool SlotPositions::has_read(TokenCount begin, TokenCount place) const {
  return !units_.empty() && units_.back().begin == begin && begin + units_.back().read == place;
}

void SlotPositions::read(const MediaUnit& unit, TokenCount end) {
  DCHECK(unit.advance > 0 && end > unit.begin && end <= unit.begin + unit.positions);
  trim(unit.begin);
  units_.push_back({unit.begin, unit.positions, unit.advance, end - unit.begin});
}

bool SlotPositions::ends_inside(TokenCount place) const {
  if (units_.empty()) return false;
  const Unit& last = units_.back();
  return place < last.end() && last.begin + last.read == place;
}

TokenCount SlotPositions::whole(TokenCount keep) const {
  for (const Unit& unit : units_) {
    if (unit.begin < keep && keep < unit.begin + unit.read) return unit.begin;
  }
  return keep;
}

void SlotPositions::trim(TokenCount keep) {
  while (!units_.empty() && units_.back().begin >= keep) units_.pop_back();
}

std::size_t SlotPositions::bytes() const { return units_.size() * sizeof(Unit) + sizeof(std::uint32_t); }

void SlotPositions::write(std::span<std::byte> to) const {
  CHECK(to.size() == bytes());
  const std::size_t units = units_.size() * sizeof(Unit);
  if (units > 0) std::memcpy(to.data(), units_.data(), units);
  const auto count = static_cast<std::uint32_t>(units_.size());
  std::memcpy(to.data() + units, &count, sizeof count);
}

std::optional<SlotPositions> SlotPositions::of_copy(std::span<const std::byte> bytes) {
  std::uint32_t count = 0;
  if (bytes.size() < sizeof count) return std::nullopt;
  std::memcpy(&count, bytes.data() + bytes.size() - sizeof count, sizeof count);
  bytes = bytes.first(bytes.size() - sizeof count);
  if (bytes.size() / sizeof(Unit) < count) return std::nullopt;
  SlotPositions positions;
  positions.units_.resize(count);
  const auto units = bytes.last(count * sizeof(Unit));
  if (count > 0) std::memcpy(positions.units_.data(), units.data(), units.size());
  std::int64_t behind = 0;  // the unit before
  for (const Unit& unit : positions.units_) {
    const bool last = &unit == &positions.units_.back();
    const bool good = unit.begin >= behind && unit.advance > 0 && unit.advance <= unit.places && unit.read > 0 &&
                      (last ? unit.read <= unit.places : unit.read == unit.places);
    if (!good) return std::nullopt;
    behind = std::int64_t{unit.begin} + unit.places;
  }
  return positions;
}

}  // namespace chasqui
