#include "app/tuning_file.h"

#include <cstdlib>
#include <fstream>
#include <sstream>

#include <gtest/gtest.h>

#include "cache/fake_folder.h"

namespace chasqui {
namespace {

const ThreadFigures kFigures = {{1, 1, microseconds(5900)}, {1, 2, microseconds(3300)}, {8, 2, microseconds(10100)}};

class TuningFileTest : public testing::Test {
 protected:
  TuningFile file(const std::string& of = "version 1\nmodel a\n") const { return {folder_ / "tuning", of}; }
  std::string path(const TuningFile& file) const { return folder_ / ("tuning/" + file.name()); }
  static std::string contents(const std::string& path) {
    std::ostringstream out;
    out << std::ifstream(path, std::ios::binary).rdbuf();
    return out.str();
  }
  static void put(const std::string& path, const std::string& text) {
    std::ofstream(path, std::ios::binary | std::ios::trunc) << text;
  }

  FakeFolder folder_;
};

TEST_F(TuningFileTest, WhatWasWrittenIsReadAtTheNextStart) {
  EXPECT_EQ(file().read(), ThreadFigures());
  file().write(kFigures);
  EXPECT_EQ(file().read(), kFigures);
  const ThreadFigures newer = {{1, 4, microseconds(1)}};
  file().write(newer);
  EXPECT_EQ(file().read(), newer);
}

TEST_F(TuningFileTest, TheFiguresOfAnotherModelOrVersionAreNotFound) {
  file().write(kFigures);
  EXPECT_EQ(file("version 1\nmodel b\n").read(), ThreadFigures());
  EXPECT_EQ(file("version 2\nmodel a\n").read(), ThreadFigures());
  EXPECT_EQ(file().read(), kFigures);
}

TEST_F(TuningFileTest, AFileThatWasRenamedIsOfSomethingElse) {
  const TuningFile mine = file();
  const TuningFile other = file("version 1\nmodel b\n");
  other.write(kFigures);
  std::filesystem::rename(path(other), path(mine));
  EXPECT_EQ(mine.read(), ThreadFigures());
}

TEST_F(TuningFileTest, DamageAnywhereIsNoticedAndTheFileIsReplaced) {
  const TuningFile mine = file();
  mine.write(kFigures);
  const std::string good = contents(path(mine));
  for (std::size_t i = 0; i < good.size(); ++i) {
    std::string bad = good;
    bad[i] = static_cast<char>(bad[i] ^ 1);
    put(path(mine), bad);
    ASSERT_EQ(mine.read(), ThreadFigures()) << "byte " << i;
    put(path(mine), good.substr(0, i));
    ASSERT_EQ(mine.read(), ThreadFigures()) << "cut to " << i;
  }
  put(path(mine), good + "x");
  EXPECT_EQ(mine.read(), ThreadFigures());
  mine.write(kFigures);
  EXPECT_EQ(mine.read(), kFigures);
}

TEST_F(TuningFileTest, FiguresThatCannotBeAreNotBelieved) {
  const TuningFile mine = file();
  for (const ThreadFigure figure : {ThreadFigure{0, 1, microseconds(5)}, ThreadFigure{1, -2, microseconds(5)},
                                    ThreadFigure{1, 1, microseconds(0)}, ThreadFigure{1, 1, seconds(100'000)}}) {
    mine.write({figure});
    EXPECT_EQ(mine.read(), ThreadFigures()) << figure.rows << ' ' << figure.threads;
  }
}

TEST_F(TuningFileTest, AFolderThatCannotBeIsAsGoodAsNone) {
  put(folder_ / "file", "not a folder");
  const TuningFile nowhere(folder_ / "file/tuning", "model a\n");
  nowhere.write(kFigures);
  EXPECT_EQ(nowhere.read(), ThreadFigures());
  const TuningFile off("", "model a\n");
  off.write(kFigures);
  EXPECT_EQ(off.read(), ThreadFigures());
}

TEST(TunedFor, WhateverThreadsHangOnMakesAnotherKey) {
  ModelInfo model;
  model.description = "qwen2, 494 M parameters, Q4_0";
  model.size_bytes = 350'000'000;
  const ServeConfig config;
  const ModelConfig context{.slots = 8, .cells = 4096};
  const std::string plain = tuned_for(config, model, context);
  EXPECT_EQ(tuned_for(config, model, context), plain);
  ModelInfo larger = model;
  larger.size_bytes *= 2;
  ServeConfig two_workers;
  two_workers.workers = 2;
  ServeConfig on_cpu;
  on_cpu.gpu_layers = 0;
  EXPECT_NE(tuned_for(config, larger, context), plain);
  EXPECT_NE(tuned_for(two_workers, model, context), plain);
  EXPECT_NE(tuned_for(on_cpu, model, context), plain);
  for (const ModelConfig& other :
       {ModelConfig{.slots = 9, .cells = 4096}, ModelConfig{.slots = 8, .cells = 8192},
        ModelConfig{.slots = 8, .cells = 4096, .unified = true}, ModelConfig{.slots = 8, .cells = 4096, .threads = 3},
        ModelConfig{.slots = 8, .cells = 4096, .threads_batch = 3},
        ModelConfig{.slots = 8, .cells = 4096, .polling = 0},
        ModelConfig{.slots = 8, .cells = 4096, .kv_keys = KvType::q8_0}}) {
    EXPECT_NE(tuned_for(config, model, other), plain);
  }
}

TEST(TuningFolder, IsWhereItWasAskedForOrNowhere) {
  ServeConfig config;
  config.tuning_cache = "/var/cache/chasqui";
  EXPECT_EQ(tuning_folder(config), "/var/cache/chasqui");
  config.keep_tuning = false;
  EXPECT_EQ(tuning_folder(config), "");
}

TEST(TuningFolder, IsAmongTheCachesForModelsOfFilesOnly) {
  ServeConfig config;
  EXPECT_EQ(tuning_folder(config), "") << "the built-in model";
  config.model_path = "model.gguf";
  const std::string found = tuning_folder(config);
  EXPECT_TRUE(found.empty() || found.ends_with("/chasqui/tuning")) << found;
  EXPECT_EQ(found.empty(), std::getenv("HOME") == nullptr && std::getenv("XDG_CACHE_HOME") == nullptr);
}

}  // namespace
}  // namespace chasqui
