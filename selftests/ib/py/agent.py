#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Runs what the other machine of a test asks for: see agent.sh. A root shell for whoever asks, so only in a VM.

usage: agent.py PORT

A connection brings one line of shell; the command's output goes straight into it, then "agent-exit-code N". If
the other side closes the connection first, the command is ended.
"""

import os
import signal
import socket
import socketserver
import subprocess
import sys
import threading


class Connection(socketserver.StreamRequestHandler):
    def handle(self):
        line = self.rfile.readline().decode()
        if line == "quit\n":
            threading.Thread(target=self.server.shutdown).start()
            return
        process = subprocess.Popen(["bash", "-c", line], stdin=subprocess.DEVNULL, stdout=self.connection,
                                   stderr=subprocess.STDOUT, start_new_session=True)
        threading.Thread(target=self.end_with_caller, args=(process,), daemon=True).start()
        code = process.wait()
        try:
            self.connection.sendall(f"agent-exit-code {code if code >= 0 else 128 - code}\n".encode())
            self.connection.shutdown(socket.SHUT_RDWR)
        except OSError:
            pass

    def end_with_caller(self, process):
        try:
            self.connection.recv(1)
        except OSError:
            pass
        if process.poll() is None:
            try:
                os.killpg(process.pid, signal.SIGTERM)
            except ProcessLookupError:
                pass


class Server(socketserver.ThreadingTCPServer):
    allow_reuse_address = True
    daemon_threads = True
    request_queue_size = 64


with Server(("", int(sys.argv[1])), Connection) as server:
    server.serve_forever(poll_interval=0.1)
