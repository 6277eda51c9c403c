// llama-server's slot routes, for those who watch or script them. GET /slots says who has which slot, without asking
// the worker. POST /slots/{id}?action=… : a slot of ours holds nothing between requests, what was computed is in the
// prefix cache; so `erase` forgets what the caller's tenant has there, whichever slot is named, `save` writes what the
// tenant's latest sequence in this slot (or that said `id_slot`) has left there, and `restore` puts it back. Loop.
#pragma once

#include "api/core/call.h"

namespace chasqui {

Handled handle_slots(Call call);
Handled handle_slot_action(Call call);

}  // namespace chasqui
