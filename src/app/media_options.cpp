#include "app/media_options.h"

#include <filesystem>
#include <system_error>

#include "base/log.h"
#include "cli/doctor.h"
#include "cli/model_files.h"
#include "model/gguf_summary.h"
#include "pull/link_hosts.h"

namespace chasqui {
namespace {

// In the folder of the model. Which of several belongs to it is not for the server to say.
std::string projector_beside(const std::string& model_path, bool of_hub) {
  const std::filesystem::path model(model_path);
  const std::filesystem::path folder = model.parent_path().empty() ? "." : model.parent_path();
  if (!of_hub && cli::model_files(folder, cli::Depth::folder).size() > 1) return {};
  std::string found;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    const std::string name = entry.path().filename().string();
    if (!name.ends_with(".gguf") || name.find("mmproj") == name.npos || name == model.filename()) continue;
    if (!found.empty()) {
      log_info("several projectors lie beside the model; --mmproj FILE names one", {{"model", model_path}});
      return {};
    }
    found = entry.path().string();
  }
  return found;
}

std::string check_url_host(const std::string& text) {
  const auto hosts = pull::LinkHosts::parse({text});
  return hosts ? "" : hosts.error().message;
}

}  // namespace

void add_media_options(CLI::App& app, MediaFlags& flags) {
  app.option_defaults()->group("Pictures and sounds");
  app.add_option("--mmproj", flags.projector,
                 "(-mm) GGUF file of a projector, with which the model reads pictures, or sounds; one that lies beside "
                 "the model is found")
      ->envname("LLAMA_ARG_MMPROJ")
      ->type_name("FILE");
  app.add_flag("--mmproj-auto,!--no-mmproj,!--no-mmproj-auto", flags.automatic,
               "whether a projector beside the model is looked for; it is by default")
      ->envname("LLAMA_ARG_MMPROJ_AUTO");
  app.add_flag("--mmproj-offload,!--no-mmproj-offload", flags.offload,
               "whether a GPU encodes pictures and sounds, if there is one; it does by default")
      ->envname("LLAMA_ARG_MMPROJ_OFFLOAD");
  constexpr int kMost = 1 << 20;
  app.add_option("--image-min-tokens", flags.image_tokens_min,
                 "positions that a picture takes at least, where the projector leaves a choice; 0: as it says")
      ->envname("LLAMA_ARG_IMAGE_MIN_TOKENS")
      ->check(CLI::Range(0, kMost))
      ->type_name("N");
  app.add_option("--image-max-tokens", flags.image_tokens_max, "… and at most; 0: as it says")
      ->envname("LLAMA_ARG_IMAGE_MAX_TOKENS")
      ->check(CLI::Range(0, kMost))
      ->type_name("N");
  app.add_option("--media-path", flags.folder,
                 "folder whose pictures and sounds clients may name, as file:// addresses; every client may read every "
                 "picture in it; by default none")
      ->envname("CHASQUI_MEDIA_PATH")
      ->type_name("DIR");
  app.add_option("--media-url-hosts", flags.url_hosts,
                 "hosts whose pictures clients may name by address: images.example, *.example, store.example:8443; *: "
                 "all at public addresses; by default none")
      ->envname("CHASQUI_MEDIA_URL_HOSTS")
      ->delimiter(',')
      ->check(check_url_host)
      ->type_name("HOSTS");
}

Result<MediaOptions> media_options(const MediaFlags& flags, const std::string& model_path, bool of_hub) {
  MediaOptions out;
  if (flags.image_tokens_max > 0 && flags.image_tokens_min > flags.image_tokens_max) {
    return invalid_field("--image-min-tokens", "--image-min-tokens must not be more than --image-max-tokens, " +
                                                   std::to_string(flags.image_tokens_max));
  }
  std::error_code unknown;
  if (!flags.folder.empty() && !std::filesystem::is_directory(flags.folder, unknown)) {
    return invalid_field("--media-path", "--media-path: " + flags.folder + " is no folder");
  }
  out.path = flags.projector;
  if (out.path.empty() && flags.automatic && !model_path.empty()) {
    out.path = projector_beside(model_path, of_hub);
    out.optional = true;
  }
  if (out.path.empty()) return out;
  out.offload = flags.offload;
  out.image_tokens_min = flags.image_tokens_min;
  out.image_tokens_max = flags.image_tokens_max;
  if (out.optional) return out;
  const cli::Finding readable = cli::check_readable("--mmproj", out.path, false);
  if (readable.level == cli::Finding::Level::bad) return invalid_field("--mmproj", "--mmproj: " + readable.found);
  const auto file = summarize_gguf(out.path);
  if (!file) return invalid_field("--mmproj", "--mmproj: " + file.error().message);
  if (file->architecture != "clip") {
    return invalid_field("--mmproj", "--mmproj: " + out.path + " is no projector but a model (" + file->architecture +
                                         "); name it with --model");
  }
  return out;
}

}  // namespace chasqui
