"""What protoc makes of `message Order { int64 id = 1; string who = 2; }`, without protoc."""

from __future__ import annotations

from google.protobuf import descriptor_pb2, descriptor_pool, message_factory

_file = descriptor_pb2.FileDescriptorProto(name="order.proto", package="shop", syntax="proto3")
_order = _file.message_type.add(name="Order")
_order.field.add(name="id", number=1, type=3, label=1)
_order.field.add(name="who", number=2, type=9, label=1)
descriptor_pool.Default().Add(_file)

Order = message_factory.GetMessageClass(descriptor_pool.Default().FindMessageTypeByName("shop.Order"))
Order.__module__ = __name__
