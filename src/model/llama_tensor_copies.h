// Which bytes of which tensors libllama copies for a state. Its functions for states copy all of a sequence at once;
// while a recorder lives, the copies that its thread asks for are noted and not made, so that they can be made in
// parts. Through the linker's --wrap (CMakeLists.txt), on Linux only. Any thread; one recorder for each at a time.
#pragma once

#include <cstddef>
#include <vector>

struct ggml_tensor;

namespace chasqui {

struct TensorCopy {
  ggml_tensor* tensor = nullptr;
  std::size_t offset = 0;           // into the tensor
  std::size_t size = 0;             // bytes
  const std::byte* host = nullptr;  // where they were to go, or to come from
};

class TensorCopyRecorder {
 public:
  // False: copies are made whether there is a recorder or not.
  static bool works();

  TensorCopyRecorder();
  ~TensorCopyRecorder();
  TensorCopyRecorder(const TensorCopyRecorder&) = delete;
  TensorCopyRecorder& operator=(const TensorCopyRecorder&) = delete;

  // In the order in which they were asked for.
  const std::vector<TensorCopy>& copies() const { return copies_; }
  void note(TensorCopy copy) { copies_.push_back(copy); }

 private:
  std::vector<TensorCopy> copies_;
};

}  // namespace chasqui
