"""Enters a machine of the laboratory from inside another one, where the kernel does not allow that: a process outside does it instead.

    door.py SOCKET MACHINE COMMAND     in a machine; a Door outside of all machines runs the command there

The command gets the standard streams and the environment of this process, and ends (as with ssh: its streams close) when this process is
killed. The exit status is that of the command.
"""

import array
import contextlib
import json
import os
import select
import socket
import subprocess
import sys
import threading

LENGTH = 8  # bytes of a number before a request


class Door:
    """Listens at a path; `enter(machine, command)` gives the words that run the command on a machine."""

    def __init__(self, path, enter):
        self.enter = enter
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(path))
        self.listener.listen(64)
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self):
        with contextlib.suppress(OSError):
            self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()

    def _accept(self):
        while True:
            try:
                caller, _ = self.listener.accept()
            except OSError:  # close()
                return
            threading.Thread(target=self._serve, args=(caller,), daemon=True).start()

    def _serve(self, caller):
        with caller:
            streams = array.array("i")
            length, ancillary, _, _ = caller.recvmsg(LENGTH, socket.CMSG_SPACE(3 * streams.itemsize), socket.MSG_CMSG_CLOEXEC)
            for _, _, data in ancillary:
                streams.frombytes(data)
            try:
                with caller.makefile("rb") as reader:
                    request = json.loads(reader.read(int.from_bytes(length, "little")))
                words = ["setpriv", "--pdeathsig", "KILL", *self.enter(request["machine"], request["command"])]
                child = subprocess.Popen(words, stdin=streams[0], stdout=streams[1], stderr=streams[2], env=request["environment"],
                                         start_new_session=True)
            finally:
                for stream in streams:
                    os.close(stream)
            ended = os.pidfd_open(child.pid)
            select.select([ended, caller], [], [])
            os.close(ended)
            child.poll()
            if child.returncode is None:
                child.kill()
            with contextlib.suppress(OSError):
                caller.sendall(bytes([child.wait() & 0xFF]))


def main():
    path, machine, *command = sys.argv[1:]
    request = json.dumps({"machine": machine, "command": " ".join(command), "environment": dict(os.environ)}).encode()
    with socket.socket(socket.AF_UNIX) as door:
        door.connect(path)
        door.sendmsg([len(request).to_bytes(LENGTH, "little")], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))])
        door.sendall(request)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):  # only the command has them now
            os.dup2(null, stream)
        status = door.recv(1)
    sys.exit(status[0] if status else 255)


if __name__ == "__main__":
    main()
