#include "record/recorded_request.h"

#include <algorithm>
#include <utility>

namespace chasqui {
namespace {

std::optional<std::string> unusable(const Request& request, const KvLedger::Layout& kv) {
  const auto prompt = static_cast<std::int64_t>(request.prompt.size());
  const std::int64_t whole = prompt + request.max_tokens;
  const std::int64_t cells = request.shift_at > 0 ? request.shift_at : whole;
  if (prompt < 1 || prompt >= kv.cells_per_slot || request.max_tokens < 0) return "its length";
  if (cells > kv.cells_per_slot || request.shift_at < 0) return "its max_tokens";
  const auto begun = static_cast<std::int64_t>(request.begun.size());
  if (begun > 0 && (begun >= request.max_tokens || prompt + begun >= kv.cells_per_slot)) return "how its answer begins";
  if (!(request.tenant.weight > 0)) return "the weight of its tenant";
  if (request.keep < 0 || request.discard < 0 || request.chunk < 0) return "how its context is shifted";
  if (request.shift_at > 0 && request.keep + 1 >= request.shift_at) return "how its context is shifted";
  const std::vector<TokenCount>& stops = request.checkpoints;
  if (!std::ranges::is_sorted(stops) || (!stops.empty() && (stops.front() < 1 || stops.back() > prompt))) {
    return "its checkpoints";
  }
  TokenCount at = 0;
  for (const MediaUnit& unit : request.media ? *request.media : MediaUnits{}) {
    if (unit.begin < at || unit.positions < 1 || unit.positions > prompt - unit.begin) return "its pictures";
    at = unit.begin + unit.positions;
  }
  return std::nullopt;
}

// Where its pictures and sounds are.
void write_units(ByteWriter& io, const MediaUnitsPtr& units) {
  const std::uint64_t count = units ? units->size() : 0;
  io(count);
  if (!units) return;
  for (const MediaUnit& unit : *units) io(unit.begin, unit.positions, unit.causal);
}

MediaUnitsPtr read_units(ByteReader& io) {
  std::uint64_t count = 0;
  io(count);
  auto units = std::make_shared<MediaUnits>();
  for (; count > 0 && !io.failed(); --count) {
    MediaUnit& unit = units->emplace_back();
    io(unit.begin, unit.positions, unit.causal);
  }
  return units->empty() ? nullptr : std::move(units);
}

}  // namespace

void write_request(ByteWriter& io, const Request& request, const std::vector<Token>& prompt,
                   const std::vector<Token>& begun, const Tenant& tenant, std::uint32_t group) {
  pass_request(io, request, tenant, group);
  io.tokens(prompt);
  io.tokens(begun);
  write_units(io, request.media);
  const bool grammar = request.parts != nullptr;
  const std::uint32_t seed = request.sampling.seed.value_or(0);
  static const AdapterSet kNone{};
  io(grammar, seed);
  pass_adapters(io, request.adapters ? *request.adapters : kNone);
}

Result<RequestPtr> read_request(ByteReader& io, const KvLedger::Layout& kv) {
  const auto request = std::make_shared<Request>();
  pass_request(io, *request, request->tenant, request->group);
  io.tokens(request->prompt);
  io.tokens(request->begun);
  request->media = read_units(io);
  bool grammar = false;
  std::uint32_t seed = 0;
  io(grammar, seed);
  request->sampling.seed = seed;
  if (grammar) request->parts = std::make_shared<SamplingParts>();  // only asked whether there are any
  const auto set = std::make_shared<AdapterSet>();
  pass_adapters(io, *set);
  if (set->id != 0) request->adapters = set;
  if (io.failed()) return Error{ErrorCode::invalid_request, "a request is not whole", ""};
  if (const auto why = unusable(*request, kv)) {
    return Error{ErrorCode::invalid_request,
                 "request " + std::to_string(request->id.value) + " cannot have been served: " + *why, ""};
  }
  return RequestPtr(request);
}

}  // namespace chasqui
