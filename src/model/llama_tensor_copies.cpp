#include "model/llama_tensor_copies.h"

#include "ggml-backend.h"

#include "base/error.h"

namespace chasqui {
namespace {

thread_local TensorCopyRecorder* tensor_recorder = nullptr;

}  // namespace

TensorCopyRecorder::TensorCopyRecorder() {
  CHECK(tensor_recorder == nullptr);
  tensor_recorder = this;
}

TensorCopyRecorder::~TensorCopyRecorder() { tensor_recorder = nullptr; }

#ifdef __linux__
bool TensorCopyRecorder::works() { return true; }
#else
bool TensorCopyRecorder::works() { return false; }
#endif

}  // namespace chasqui

#ifdef __linux__
extern "C" {

void __real_ggml_backend_tensor_get(const ggml_tensor* tensor, void* data, std::size_t offset, std::size_t size);
void __real_ggml_backend_tensor_set(ggml_tensor* tensor, const void* data, std::size_t offset, std::size_t size);
void __wrap_ggml_backend_tensor_get(const ggml_tensor* tensor, void* data, std::size_t offset, std::size_t size);
void __wrap_ggml_backend_tensor_set(ggml_tensor* tensor, const void* data, std::size_t offset, std::size_t size);

void __wrap_ggml_backend_tensor_get(const ggml_tensor* tensor, void* data, std::size_t offset, std::size_t size) {
  chasqui::TensorCopyRecorder* const recorder = chasqui::tensor_recorder;
  if (recorder == nullptr) return __real_ggml_backend_tensor_get(tensor, data, offset, size);
  recorder->note({const_cast<ggml_tensor*>(tensor), offset, size, static_cast<const std::byte*>(data)});
}

void __wrap_ggml_backend_tensor_set(ggml_tensor* tensor, const void* data, std::size_t offset, std::size_t size) {
  chasqui::TensorCopyRecorder* const recorder = chasqui::tensor_recorder;
  if (recorder == nullptr) return __real_ggml_backend_tensor_set(tensor, data, offset, size);
  recorder->note({tensor, offset, size, static_cast<const std::byte*>(data)});
}

}  // extern "C"
#endif
