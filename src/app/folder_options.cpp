#include "app/folder_options.h"

#include <CLI/CLI.hpp>

#include "app/option_kinds.h"

namespace chasqui {

void add_folder_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("What outlives the process");
  app.add_option("--cache-disk", config.cache_disk,
                 "folder for what leaves the memory of --cache-ram, so that it survives a restart; this server's alone")
      ->envname("CHASQUI_CACHE_DISK")
      ->type_name("DIR");
  app.add_option("--cache-disk-mib", config.cache_disk_mib, "MiB of all files in the folder of --cache-disk")
      ->envname("CHASQUI_CACHE_DISK_MIB")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->type_name("MIB");
  app.add_option("--slot-save-path", config.slot_save_path,
                 "folder for what POST /slots/{id}?action=save writes; this server's alone")
      ->envname("LLAMA_ARG_SLOT_SAVE_PATH")
      ->type_name("DIR");
  app.add_option("--slot-save-mib", config.slot_save_mib, "MiB of all files in the folder of --slot-save-path")
      ->envname("CHASQUI_SLOT_SAVE_MIB")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->type_name("MIB");
  app.add_option("--session-dir", config.session_dir,
                 "folder for sessions, so that they survive a restart; this server's alone")
      ->envname("CHASQUI_SESSION_DIR")
      ->type_name("DIR");
  app.add_option(
         "--batch-dir", config.batch_dir,
         "folder for files and batches (/v1/files, /v1/batches), which outlive the process; this server's alone")
      ->envname("CHASQUI_BATCH_DIR")
      ->type_name("DIR");
  app.add_option("--batch-mib", config.batch_mib, "MiB of all files in the folder of --batch-dir")
      ->envname("CHASQUI_BATCH_MIB")
      ->check(CLI::Range(std::int64_t{1}, std::int64_t{1} << 30))
      ->type_name("MIB");
  app.add_option("--batch-lines", config.batch_lines,
                 "lines of batches that run at once, in class background; 0: as many as the slots of loaded models")
      ->envname("CHASQUI_BATCH_LINES")
      ->check(CLI::Range(0, 4096))
      ->type_name("N");
  app.add_option("--batch-queue", config.batch_queue,
                 "queue in which nodes share lines of batches (with --batch-dir): "
                 "redis://[[USER]:PASSWORD@]HOST[:PORT][/DB], unix:///PATH or nats://[USER:PASSWORD@]HOST[:PORT]")
      ->envname("CHASQUI_BATCH_QUEUE")
      ->type_name("URL");
  app.add_option("--tuning-cache", config.tuning_cache,
                 "folder for what is measured of compute threads, so that the next start need not; by default "
                 "chasqui/tuning in $XDG_CACHE_HOME or ~/.cache")
      ->envname("CHASQUI_TUNING_CACHE")
      ->type_name("DIR");
  add_off_flag(app, "--no-tuning-cache", config.keep_tuning, "measure at every start, and keep nothing of it")
      ->envname("CHASQUI_NO_TUNING_CACHE");
}

}  // namespace chasqui
