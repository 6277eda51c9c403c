// A backend of ggml with one device that says it is a GPU, with an address on the PCI bus, and computes as the CPU
// does: for what the server does with models on a GPU where a test has none. Its buffers are memory of the CPU that no
// other device may use, so that everything is copied to it and back as to a real one.
#include "ggml-backend-impl.h"

static struct ggml_backend_buffer_type buffers;
static struct ggml_backend_device gpu;

static ggml_backend_dev_t cpu(void) { return ggml_backend_dev_by_type(GGML_BACKEND_DEVICE_TYPE_CPU); }

static const char* buffers_name(ggml_backend_buffer_type_t type) {
  (void)type;
  return "Fake0";
}

static ggml_backend_buffer_t buffers_alloc(ggml_backend_buffer_type_t type, size_t size) {
  ggml_backend_buffer_t out = ggml_backend_buft_alloc_buffer(ggml_backend_cpu_buffer_type(), size);
  if (out != NULL) out->buft = type;
  return out;
}

static size_t buffers_alignment(ggml_backend_buffer_type_t type) {
  (void)type;
  return ggml_backend_buft_get_alignment(ggml_backend_cpu_buffer_type());
}

static const char* gpu_name(ggml_backend_dev_t device) {
  (void)device;
  return "Fake0";
}

static const char* gpu_description(ggml_backend_dev_t device) {
  (void)device;
  return "the CPU as a GPU";
}

static void gpu_memory(ggml_backend_dev_t device, size_t* free, size_t* total) {
  (void)device;
  *free = *total = (size_t)8 << 30;
}

static enum ggml_backend_dev_type gpu_type(ggml_backend_dev_t device) {
  (void)device;
  return GGML_BACKEND_DEVICE_TYPE_GPU;
}

static void gpu_props(ggml_backend_dev_t device, struct ggml_backend_dev_props* props) {
  props->name = gpu_name(device);
  props->description = gpu_description(device);
  props->type = gpu_type(device);
  props->device_id = "0000:c1:00.0";
  gpu_memory(device, &props->memory_free, &props->memory_total);
}

static ggml_backend_t gpu_begin(ggml_backend_dev_t device, const char* parameters) {
  static ggml_guid guid = {0xfa, 0xce};  // not the CPU's
  ggml_backend_t out = ggml_backend_dev_init(cpu(), parameters);
  if (out == NULL) return NULL;
  out->device = device;
  out->guid = &guid;
  return out;
}

static ggml_backend_buffer_type_t gpu_buffers(ggml_backend_dev_t device) {
  (void)device;
  return &buffers;
}

static bool gpu_computes(ggml_backend_dev_t device, const struct ggml_tensor* operation) {
  (void)device;
  return ggml_backend_dev_supports_op(cpu(), operation);
}

static bool gpu_reads(ggml_backend_dev_t device, ggml_backend_buffer_type_t type) {
  (void)device;
  return type == &buffers;
}

static const char* name(ggml_backend_reg_t backend) {
  (void)backend;
  return "Fake";
}

static size_t count(ggml_backend_reg_t backend) {
  (void)backend;
  return 1;
}

static ggml_backend_dev_t device_at(ggml_backend_reg_t backend, size_t place) {
  (void)backend, (void)place;
  return &gpu;
}

static struct ggml_backend_reg registry = {
    .api_version = GGML_BACKEND_API_VERSION,
    .iface = {.get_name = name, .get_device_count = count, .get_device = device_at},
};
static struct ggml_backend_buffer_type buffers = {
    .iface = {.get_name = buffers_name, .alloc_buffer = buffers_alloc, .get_alignment = buffers_alignment},
    .device = &gpu,
};
static struct ggml_backend_device gpu = {
    .iface = {.get_name = gpu_name,
              .get_description = gpu_description,
              .get_memory = gpu_memory,
              .get_type = gpu_type,
              .get_props = gpu_props,
              .init_backend = gpu_begin,
              .get_buffer_type = gpu_buffers,
              .supports_op = gpu_computes,
              .supports_buft = gpu_reads},
    .reg = &registry,
};

GGML_BACKEND_API ggml_backend_reg_t ggml_backend_init(void);

ggml_backend_reg_t ggml_backend_init(void) { return &registry; }
