// What was measured at start, kept for the next start: a small file of text for each model, context, machine and
// version in the user's cache folder. It is there whole or not at all; one that is damaged, of something else or of
// another version is as good as none, and so is a folder that cannot be read or written. At start only, one thread.
#pragma once

#include <string>

#include "app/config.h"
#include "model/model_info.h"
#include "model/thread_figures.h"

namespace chasqui {

class TuningFile {
 public:
  // Without a folder nothing is found and nothing kept. `of` is what the figures are good for, in lines of text.
  TuningFile(std::string folder, std::string of);

  ThreadFigures read() const;
  void write(const ThreadFigures& figures) const;
  const std::string& name() const { return name_; }

 private:
  const std::string folder_;
  const std::string of_;
  const std::string name_;
};

// --tuning-cache, else the folder of the user's caches; empty: nothing is to be kept, or there is no such folder.
std::string tuning_folder(const ServeConfig& config);

// All that the speed of threads hangs on: versions, processor, cores, the model's shape and the context's.
std::string tuned_for(const ServeConfig& config, const ModelInfo& model, const ModelConfig& context);

}  // namespace chasqui
