#include "app/resume_options.h"

#include "app/option_kinds.h"

namespace chasqui {

void add_resume_options(CLI::App& app, ServeConfig& config) {
  app.option_defaults()->group("Resumable streams");
  KeptStreamLimits& kept = config.kept;
  add_seconds(app, "--resume-ttl", kept.ttl, "how long a stream goes on, and is kept, without a reader")
      ->envname("CHASQUI_RESUME_TTL")
      ->check(CLI::Range(1.0, 3600.0))
      ->default_str("60");
  app.add_option("--resume-streams", kept.streams, "streams that are kept at once; 0: none")
      ->envname("CHASQUI_RESUME_STREAMS")
      ->check(CLI::Range(0, 10000))
      ->type_name("N");
  app.add_option("--resume-tenant-streams", kept.tenant_streams, "those of one tenant that has a key")
      ->envname("CHASQUI_RESUME_TENANT_STREAMS")
      ->check(CLI::Range(1, 10000))
      ->type_name("N");
  app.add_option("--resume-bytes", kept.bytes, "bytes of each that can be read again")
      ->envname("CHASQUI_RESUME_BYTES")
      ->check(CLI::Range(1024, 1 << 30))
      ->type_name("N");
}

}  // namespace chasqui
