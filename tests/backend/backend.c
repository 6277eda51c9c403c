// A backend of ggml without devices, in three kinds (CMakeLists.txt): GOOD, OLD, which is of another ggml, and NONE,
// which is a library without a backend. It asks ggml for something, so that the binary that loads it has to show its
// functions.
#include "ggml-backend-impl.h"

#ifndef NONE
static const char* name(ggml_backend_reg_t backend) {
  (void)backend;
  return ggml_type_size(GGML_TYPE_F32) == 4 ? "Test" : "wrong";
}

static size_t count(ggml_backend_reg_t backend) {
  (void)backend;
  return 0;
}

static ggml_backend_dev_t no_device(ggml_backend_reg_t backend, size_t place) {
  (void)backend, (void)place;
  return NULL;
}

GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) {
  static struct ggml_backend_reg backend = {
      .api_version = GGML_BACKEND_API_VERSION,
      .iface = {.get_name = name, .get_device_count = count, .get_device = no_device, .get_proc_address = NULL},
      .context = NULL,
  };
#ifdef OLD
  backend.api_version = GGML_BACKEND_API_VERSION - 1;
#endif
  return &backend;
}
#endif
