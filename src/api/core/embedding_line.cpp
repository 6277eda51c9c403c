#include "api/core/embedding_line.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <utility>

namespace chasqui {

void EmbeddingLine::add(EmbeddingWait& wait) {
  const auto [place, first] = tenants_.try_emplace(wait.tenant);
  Tenant& tenant = place->second;
  // One that joins has had no less than those that are there.
  if (first && tenants_.size() > 1) {
    std::uint64_t least = std::numeric_limits<std::uint64_t>::max();
    for (const auto& [id, one] : tenants_) least = id == wait.tenant ? least : std::min(least, one.tokens);
    tenant.tokens = least;
  }
  tenant.waits.push_back(&wait);
}

EmbeddingLine::Tenant* EmbeddingLine::whose_turn() {
  Tenant* chosen = nullptr;
  for (auto& [id, tenant] : tenants_) {
    if (chosen == nullptr || tenant.tokens < chosen->tokens) chosen = &tenant;
  }
  return chosen;
}

EmbeddingLine::Job EmbeddingLine::next() {
  Job job;
  job.number = ++jobs_;
  std::size_t tokens = 0;
  while (Tenant* const tenant = whose_turn()) {
    EmbeddingWait& wait = *tenant->waits.front();
    wait.left = wait.gone && wait.gone();
    if (wait.left) {
      job.left.push_back(&wait);
    } else {
      const std::size_t size = wait.inputs[wait.begun].size();
      const bool joins = same_adapters(wait.adapters.get(), job.adapters.get()) && tokens + size <= kJobTokens;
      if (!job.inputs.empty() && !joins) break;
      if (job.inputs.empty()) job.adapters = wait.adapters;
      tokens += size;
      tenant->tokens += size;
      job.inputs.push_back(std::move(wait.inputs[wait.begun++]));
      job.of.push_back(&wait);
      job.tokens.push_back(size);
    }
    tenant->waits.pop_front();
    if (!wait.left && wait.begun < wait.inputs.size()) tenant->waits.push_back(&wait);
    if (tenant->waits.empty()) std::erase_if(tenants_, [](const auto& one) { return one.second.waits.empty(); });
  }
  return job;
}

void EmbeddingLine::share(const Job& job, const CpuShare& cost) {
  const bool mixed = std::ranges::any_of(job.of, [&job](const EmbeddingWait* wait) { return wait != job.of.front(); });
  const auto all = std::accumulate(job.tokens.begin(), job.tokens.end(), std::size_t{0});
  for (std::size_t i = 0; i < job.of.size(); ++i) {
    EmbeddingWait& wait = *job.of[i];
    wait.cpu += cost.cpu * static_cast<Duration::rep>(job.tokens[i]) / static_cast<Duration::rep>(all);
    if (cost.joules) {
      const double part = static_cast<double>(job.tokens[i]) / static_cast<double>(all);
      wait.joules = wait.joules.value_or(0) + *cost.joules * part;
    }
    if (std::exchange(wait.last_job, job.number) == job.number) continue;
    ++wait.jobs;
    wait.shared += mixed ? 1 : 0;
  }
}

void EmbeddingLine::give(const Job& job, Result<std::vector<Embedded>> vectors, const CpuShare& cost) {
  share(job, cost);
  if (vectors) {
    for (std::size_t i = 0; i < job.of.size(); ++i) job.of[i]->out.push_back(std::move((*vectors)[i]));
    return;
  }
  for (EmbeddingWait* const wait : job.of) wait->error = vectors.error();
  for (auto& [id, tenant] : tenants_) {
    std::erase_if(tenant.waits, [](const EmbeddingWait* wait) { return wait->error.has_value(); });
  }
  std::erase_if(tenants_, [](const auto& one) { return one.second.waits.empty(); });
}

EmbeddingWait* EmbeddingLine::front() const {
  return tenants_.empty() ? nullptr : tenants_.begin()->second.waits.front();
}

}  // namespace chasqui
