#include "api/core/served_model.h"

#include "api/core/generation.h"

namespace chasqui {

ModelUse::ModelUse(ServedModel& served) : served_(&served) { ++served.users; }

ModelUse::~ModelUse() { --served_->users; }

bool takes(const ServedModel& served, MediaKind kind) {
  return served.model.media != nullptr && served.model.media->takes(kind);
}

void cancel_request(ServedModel& served, RequestId request) {
  served.streams.cancel(request);
  for (ServedModel* const older : served.older) older->streams.cancel(request);
}

}  // namespace chasqui
