"""A very small systemd: opens a listening socket and hands it to servers. Commands come on standard input.

start  starts the program of the command line with the socket, says "pid N"
wait   waits for it to end, says "code N"
"""
import os
import socket
import sys

LISTENER = socket.create_server(("127.0.0.1", 0), backlog=1024)
print("port", LISTENER.getsockname()[1], flush=True)
child = 0
for line in sys.stdin:
    if line.strip() == "start":
        child = os.fork()
        if child == 0:
            os.dup2(LISTENER.fileno(), 3)
            os.set_inheritable(3, True)  # dup2 does nothing where it is 3 already
            os.environ.update(LISTEN_PID=str(os.getpid()), LISTEN_FDS="1", LISTEN_FDNAMES="chasqui.socket")
            os.execv(sys.argv[1], sys.argv[1:])
        print("pid", child, flush=True)
    elif line.strip() == "wait":
        print("code", os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
