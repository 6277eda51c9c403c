#include "engine/slot_store.h"

#include <utility>

#include "base/log.h"
#include "core/lasting_tenant.h"

namespace chasqui {
namespace {

Error nameless() { return {ErrorCode::forbidden, "a client without a key of its own cannot keep files here", ""}; }

// What the client can change is its own mistake; what it cannot is not.
Error refusal(const std::string& filename, Error error) {
  if (error.code == ErrorCode::unavailable) return error;
  const std::string refused = "filename " + filename + " cannot be restored: ";
  if (error.code == ErrorCode::not_found) return {ErrorCode::not_found, refused + "there is no such file", "filename"};
  return invalid_field("filename", refused + error.message);
}

}  // namespace

Result<SlotTransfer> SlotStore::save(SlotId slot, const Tenant& tenant, const std::string& filename, bool alone) {
  if (auto good = check_slot_file_name(filename); !good) return good.error();
  const auto name = lasting_tenant(tenant, false);
  if (!name) return nameless();
  const SlotCopy copy = engine_.copy_of_slot(slot, tenant);
  if (!copy.kv) {
    return invalid_field("id_slot", "nothing that was computed in slot " + std::to_string(slot.value) +
                                        " is in memory: it was never used, or what it had has made room for others");
  }
  const TimePoint started = clock_.now();
  const auto written = files_->save(filename, {{*name, copy.adapters}, alone}, copy.tokens, *copy.kv);
  if (!written) {
    log_warning("a slot could not be saved", {{"folder", files_->path()}, {"reason", written.error().message}});
    return written.error();
  }
  return SlotTransfer{copy.tokens.size(), *written, clock_.now() - started};
}

Result<SlotTransfer> SlotStore::restore(SlotId slot, const Tenant& tenant, const std::string& filename) {
  if (auto good = check_slot_file_name(filename); !good) return good.error();
  const auto name = lasting_tenant(tenant, false);
  if (!name) return nameless();
  const TimePoint started = clock_.now();
  auto loaded = files_->restore(filename, *name, engine_.snapshot_limits());
  if (!loaded) {
    log_warning("a slot's file is refused", {{"folder", files_->path()}, {"reason", loaded.error().message}});
    return refusal(filename, loaded.error());
  }
  const std::uint64_t bytes = snapshot_file_bytes(loaded->head.tokens.size(), loaded->head.kv_bytes);
  const std::size_t tokens = loaded->head.tokens.size();
  SlotCopy copy{0, loaded->head.key.adapter, std::move(loaded->head.tokens), std::move(loaded->kv)};
  if (!engine_.adopt_slot(slot, tenant, std::move(copy))) {
    return invalid_field("filename", "filename " + filename + " cannot be restored: it does not fit into --cache-ram");
  }
  return SlotTransfer{tokens, bytes, clock_.now() - started};
}

}  // namespace chasqui
