#include "base/energy_meter.h"

#include <gtest/gtest.h>

namespace chasqui {
namespace {

// Takes what it is given, each time.
class FixedSource final : public EnergySource {
 public:
  explicit FixedSource(std::int64_t microjoules) : microjoules_(microjoules) {}

  std::int64_t take(TimePoint /*now*/, bool of_requests) override {
    ++(of_requests ? taken : skipped);
    return tells_ ? microjoules_ : 0;
  }
  bool tells() const override { return tells_; }
  void fall_silent() { tells_ = false; }

  int taken = 0;
  int skipped = 0;

 private:
  const std::int64_t microjoules_;
  bool tells_ = true;
};

class EnergyMeterTest : public testing::Test {
 protected:
  EnergyMeter make() {
    std::vector<std::unique_ptr<EnergySource>> sources;
    for (const std::int64_t microjoules : {2'000'000, 500'000}) {
      auto source = std::make_unique<FixedSource>(microjoules);
      sources_.push_back(source.get());
      sources.push_back(std::move(source));
    }
    return EnergyMeter(std::move(sources));
  }

  std::vector<FixedSource*> sources_;
};

TEST_F(EnergyMeterTest, AddsUpWhatSourcesTell) {
  EnergyMeter meter = make();
  EXPECT_DOUBLE_EQ(meter.take({}), 2.5);
  EXPECT_DOUBLE_EQ(meter.take({}), 2.5);
  EXPECT_DOUBLE_EQ(meter.metrics().joules.value(), 5);
}

TEST_F(EnergyMeterTest, WhatIsSkippedIsNoRequests) {
  EnergyMeter meter = make();
  meter.skip({});
  for (const FixedSource* const source : sources_) {
    EXPECT_EQ(source->skipped, 1);
    EXPECT_EQ(source->taken, 0);
  }
  EXPECT_DOUBLE_EQ(meter.metrics().joules.value(), 0);
}

TEST_F(EnergyMeterTest, TellsAsLongAsOneSourceDoes) {
  EnergyMeter meter = make();
  sources_[0]->fall_silent();
  EXPECT_TRUE(meter.tells());
  EXPECT_DOUBLE_EQ(meter.take({}), 0.5);
  sources_[1]->fall_silent();
  EXPECT_FALSE(meter.tells());
}

}  // namespace
}  // namespace chasqui
