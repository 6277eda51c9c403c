// Files and batches of a server that has a folder for them. Owned by the Server; loop thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "api/batch/batch_desk.h"
#include "api/core/node.h"
#include "api/core/served_model.h"
#include "api/routes/routes.h"
#include "engine/engine.h"

namespace chasqui {

class BatchService {
 public:
  // `lines`: that run at once; 0: as many as there are slots. `node` outlives it, and gets the desk.
  BatchService(std::shared_ptr<JobFolder> folder, std::uint64_t disk_max, std::size_t lines, Node& node)
      : store_(std::move(folder), disk_max, node.frontend.loop, node.frontend.clock),
        runner_(
            store_, node.frontend, [&node, lines] { return lines != 0 ? lines : slots_of(node); },
            [&node](std::string path, Caller caller, net::HttpExchange& exchange) {
              return answer_for(node, std::move(path), std::move(caller), exchange);
            }),
        desk_(store_, runner_) {
    store_.load();
    node.frontend.batches = &desk_;
  }

  BatchRunner& runner() { return runner_; }
  const BatchMetrics& metrics() { return store_.metrics(); }

 private:
  static std::size_t slots_of(const Node& node) {
    std::size_t slots = 0;
    for (const ServedModel* const served : node.models.all()) {
      slots += static_cast<std::size_t>(served->engine.shape().slots);
    }
    return std::max<std::size_t>(1, slots);
  }

  BatchStore store_;
  BatchRunner runner_;
  BatchDesk desk_;
};

}  // namespace chasqui
