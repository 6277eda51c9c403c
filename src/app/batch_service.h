// Files and batches of a server that has a folder for them. Owned by the Server; loop thread.
#pragma once

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "api/batch/batch_desk.h"
#include "api/core/node.h"
#include "api/core/served_model.h"
#include "api/routes/routes.h"
#include "app/queue_thread.h"
#include "engine/engine.h"
#include "jobs/queue_name.h"

namespace chasqui {

class BatchService {
 public:
  // `lines`: that run at once; 0: as many as there are slots. `node` outlives it, and gets the desk. `queue`: through
  // which other nodes get lines; null: all run here.
  BatchService(std::shared_ptr<JobFolder> folder, std::uint64_t disk_max, std::size_t lines, Node& node,
               std::unique_ptr<LineQueue> queue)
      : store_(std::move(folder), disk_max, node.frontend.loop, node.frontend.clock),
        runner_(
            store_, node.frontend, [&node, lines] { return lines != 0 ? lines : slots_of(node); },
            [&node](std::string path, Caller caller, net::HttpExchange& exchange) {
              return answer_for(node, std::move(path), std::move(caller), exchange);
            }),
        desk_(store_, runner_) {
    store_.load();
    node.frontend.batches = &desk_;
    if (!queue) return;
    const std::string home = queue_name_of(*store_.folder());
    const auto hear = [this](QueueNews news) { runner_.hear(std::move(news)); };
    queue_.emplace(std::move(queue), home, node.frontend.loop, hear);
    runner_.share(*queue_, home, queue_->metrics());
  }

  // Once the server is open.
  void begin() {
    runner_.begin();
    if (queue_) queue_->begin();
  }
  BatchRunner& runner() { return runner_; }
  void add_to(MetricsPage& page) {
    store_.metrics().add_to(page);
    if (queue_) queue_->metrics().add_to(page);
  }

 private:
  static std::size_t slots_of(const Node& node) {
    std::size_t slots = 0;
    for (const ServedModel* const served : node.models.all()) {
      slots += static_cast<std::size_t>(served->engine.shape().slots);
    }
    return std::max<std::size_t>(1, slots);
  }

  std::optional<QueueThread> queue_;  // before the runner, which orders until it goes
  BatchStore store_;
  BatchRunner runner_;
  BatchDesk desk_;
};

}  // namespace chasqui
