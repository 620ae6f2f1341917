"""
gRPC for a server, without sockets: HTTP/2 frames in, calls begun; answers told, frames out.

Reading order: :mod:`~logstore.compat.grpc.frames` (bytes),
:mod:`~logstore.compat.grpc.header_blocks`, :mod:`~logstore.compat.grpc.headers` and
:mod:`~logstore.compat.grpc.messages` (what frames carry), :mod:`~logstore.compat.grpc.call` (one
request and its answer), :mod:`~logstore.compat.grpc.connection` (all calls of one peer).

Every call of a client costs this process what its frames cost, and no thread or second socket
stands in between. Needs the extra ``grpc``.
"""
