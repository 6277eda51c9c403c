// chasqui: reads the command line and runs what it asks for.
#include <csignal>

#include <fcntl.h>
#include <unistd.h>

#include "app/config.h"
#include "app/decoder_child.h"
#include "app/load_trial.h"
#include "app/serve.h"
#include "app/supervise.h"

namespace {

// Where one of them is closed the next file that is opened would get its number, and what is written to standard error.
void open_standard_files() {
  for (const int fd : {STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO}) {
    if (::fcntl(fd, F_GETFD) < 0) (void)::open("/dev/null", O_RDWR);  // which takes the lowest number that is free
  }
}

// The first process of a container does not die of a signal that it does not handle. What handles them takes them over.
void end_at_signals_as_first_process() {
  if (::getpid() != 1) return;
  struct sigaction action {};
  action.sa_handler = [](int number) { ::_exit(128 + number); };
  for (const int number : {SIGTERM, SIGINT}) ::sigaction(number, &action, nullptr);
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_files();
  end_at_signals_as_first_process();
  std::signal(SIGCHLD, SIG_DFL);  // NOLINT(cert-err33-c): where a parent ignores it, ended children are not told of
  if (chasqui::is_media_decoder(argc, argv)) return chasqui::run_media_decoder();
  if (chasqui::is_load_trial()) chasqui::begin_load_trial();
  const chasqui::CommandLine line = chasqui::read_command_line(argc, argv);
  if (line.command) return line.command();
  if (!line.serve) return line.exit_code;
  if (chasqui::is_load_trial()) return chasqui::run_load_trial(*line.serve);
  const bool supervises = line.serve->operation.supervise && !chasqui::is_supervised();
  return supervises ? chasqui::supervise(*line.serve, argv) : chasqui::serve(*line.serve);
}
