#include "model/gguf_handle.h"

#include <gguf.h>

namespace chasqui {

void GgufFree::operator()(gguf_context* file) const { gguf_free(file); }

}  // namespace chasqui
