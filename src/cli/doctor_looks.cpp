// The checks of `chasqui doctor` that touch the system: ports, folders, files.
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <boost/asio/io_context.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/doctor.h"

namespace chasqui::cli {
namespace {

namespace asio = boost::asio;
namespace fs = std::filesystem;
using Level = Finding::Level;

std::string system_message() { return std::strerror(errno); }

// The first folder above a path that is there.
fs::path existing_above(fs::path path) {
  path = fs::absolute(path).lexically_normal();
  std::error_code error;
  while (!path.empty() && path != path.root_path() && !fs::exists(path, error)) path = path.parent_path();
  return path;
}

// By a server that runs, see cache/private_folder.
bool is_locked(const std::string& folder) {
  const int lock = ::open((folder + "/lock").c_str(), O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
  if (lock < 0) return false;
  const bool taken = ::flock(lock, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  ::close(lock);
  return taken;
}

}  // namespace

Finding check_port(const std::string& host, std::uint16_t port) {
  const std::string where = host + " port " + std::to_string(port);
  boost::system::error_code error;
  const auto address = asio::ip::make_address(host == "localhost" ? "127.0.0.1" : host, error);
  if (error) {
    return {Level::bad, "port", "--host " + host + " is no address",
            "use an IPv4 or IPv6 address, localhost, or a path that ends in .sock"};
  }
  asio::io_context loop(1);
  asio::ip::tcp::acceptor acceptor(loop);
  const asio::ip::tcp::endpoint endpoint(address, port);
  acceptor.open(endpoint.protocol(), error);
  if (!error) acceptor.set_option(asio::ip::tcp::acceptor::reuse_address(true), error);
  if (!error) acceptor.bind(endpoint, error);
  if (!error) acceptor.listen(1, error);
  if (!error) return {Level::good, "port", where + " is free", ""};
  if (error == asio::error::address_in_use) {
    return {Level::bad, "port", where + " is taken: another process listens there",
            "stop it (ss -ltnp shows who it is), or choose another with --port"};
  }
  if (error == asio::error::access_denied) {
    return {Level::bad, "port", where + " is not for this user",
            "choose one above 1023 with --port, or give the process CAP_NET_BIND_SERVICE"};
  }
  return {Level::bad, "port", where + ": " + error.message(), "choose another with --host and --port"};
}

Finding check_folder(const std::string& flag, const std::string& path) {
  const std::string name = flag + " " + path;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    const fs::path above = existing_above(path);
    std::error_code error;
    if (fs::is_directory(above, error) && ::access(above.c_str(), W_OK | X_OK) == 0)
      return {Level::good, flag, path + " will be made", ""};
    return {Level::bad, flag, path + " is not there, and cannot be made in " + above.string(),
            "make it for this user, or name another folder"};
  }
  if (!S_ISDIR(status.st_mode)) return {Level::bad, flag, path + " is no folder", "name a folder"};
  if (::access(path.c_str(), R_OK | W_OK | X_OK) != 0) {
    return {Level::bad, flag, path + ": " + system_message(), "give it to the user that runs the server (chown)"};
  }
  if ((status.st_mode & S_IWOTH) != 0) {
    return {Level::warning, flag, path + " can be written by everybody", "chmod o-w " + path};
  }
  return {Level::good, flag, path + " can be written", ""};
}

Finding check_private_folder(const std::string& flag, const std::string& path) {
  Finding found = check_folder(flag, path);
  struct stat status {};
  if (found.level == Level::bad || ::stat(path.c_str(), &status) != 0) return found;
  if (status.st_uid != ::geteuid()) {
    return {Level::bad, flag, path + " belongs to another user", "give it to the user that runs the server (chown)"};
  }
  if ((status.st_mode & 077) != 0) {
    return {Level::bad, flag, path + " holds what clients have said: others may not look into it", "chmod 700 " + path};
  }
  if (is_locked(path)) {
    return {Level::warning, flag, path + " is in use by another process", "give each server a folder of its own"};
  }
  return found;
}

Finding check_socket_path(const std::string& flag, const std::string& path) {
  constexpr std::size_t kLongest = 107;
  if (path.size() > kLongest) {
    return {Level::bad, flag, path + " is longer than the 107 bytes that a socket's name may have", "choose another"};
  }
  const std::string folder = fs::absolute(path).parent_path().string();
  if (::access(folder.c_str(), W_OK | X_OK) != 0) {
    return {Level::bad, flag, folder + ": " + system_message(), "make the folder for this user, or choose another"};
  }
  struct stat status {};
  if (::lstat(path.c_str(), &status) == 0 && !S_ISSOCK(status.st_mode)) {
    return {Level::bad, flag, path + " is there and is no socket", "remove it, or choose another name"};
  }
  return {Level::good, flag, path + " can be made", ""};
}

Finding check_readable(const std::string& flag, const std::string& path, bool secret) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0 || ::access(path.c_str(), R_OK) != 0) {
    return {Level::bad, flag, path + ": " + system_message(), "let the user that runs the server read it"};
  }
  if (!S_ISREG(status.st_mode)) return {Level::bad, flag, path + " is no file", "name a file"};
  if (secret && (status.st_mode & (S_IRGRP | S_IROTH)) != 0) {
    return {Level::warning, flag, path + " can be read by others", "chmod 600 " + path};
  }
  return {Level::good, flag, path + " can be read", ""};
}

}  // namespace chasqui::cli
