// The C++ client at work: asks a server on its local socket and prints the answer as it comes.
//
//   chasqui_ask --socket /run/chasqui.sock What is Chasqui?
//   chasqui_ask --socket /run/chasqui.sock --command health
#include <cstdio>
#include <exception>
#include <string>

#include "chasqui_client.h"

namespace {

void ask(chasqui::Client& client, const std::string& question, boost::json::object request) {
  request["messages"] = boost::json::array{boost::json::object{{"role", "user"}, {"content", question}}};
  client.generate(std::move(request), [](const boost::json::object& event) {
    if (event.at("event") == "token") {
      const boost::json::string& text = event.at("text").as_string();
      std::fwrite(text.data(), 1, text.size(), stdout);
      std::fflush(stdout);
    }
    return true;
  });
  std::puts("");
}

int run(int argc, char** argv) {
  std::string path = "/run/chasqui.sock";
  std::string command;
  std::string question;
  boost::json::object request;
  for (int i = 1; i < argc; ++i) {
    const std::string argument = argv[i];
    const bool has_value = i + 1 < argc;
    if (argument == "--socket" && has_value) {
      path = argv[++i];
    } else if (argument == "--command" && has_value) {
      command = argv[++i];
    } else if (argument == "--temperature" && has_value) {
      request["temperature"] = std::stod(argv[++i]);
    } else {
      question += (question.empty() ? "" : " ") + argument;
    }
  }
  if (command.empty() == question.empty()) {
    std::fputs("usage: chasqui_ask [--socket PATH] [--temperature T] (QUESTION | --command NAME)\n", stderr);
    return 2;
  }
  chasqui::Client client(path);
  if (command.empty()) {
    ask(client, question, std::move(request));
  } else {
    std::puts(boost::json::serialize(client.command(command)).c_str());
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "chasqui_ask: %s\n", error.what());
    return 1;
  }
}
