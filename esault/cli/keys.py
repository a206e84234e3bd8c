"""`esault keys`."""

from __future__ import annotations

import click

from esault.errors import UsageError

__all__ = ["command"]


@click.command("keys")
@click.argument("file", type=click.Path(dir_okay=False))
@click.option(
    "--role", metavar="look|scale|run", help="Make a key that lets its holder do so much and no more; say --of."
)
@click.option(
    "--of", "cluster", metavar="KEY", type=click.Path(), help="The cluster's key, which signs a key with a role."
)
@click.option("--name", help="Whom a key with a role is for, as audit logs say it.  [default: the role]")
@click.option(
    "--succeeds", metavar="KEY", type=click.Path(), help="Make the key that follows this one: each accepts the other."
)
@click.option("--retire", "retires", is_flag=True, help="Have FILE accept no key but its own any more.")
def command(
    file: str, role: str | None, cluster: str | None, name: str | None, succeeds: str | None, retires: bool
) -> None:
    """Make a cluster's key and write it to FILE.

    Who holds this file belongs to the cluster: copy it to each of its hosts over a safe way (scp), readable by the user alone.

    \b
    A key for a person who may look, change the number of sub-units, or start and end runs:
      esault keys alice.key --role look --of cluster.key --name alice
    Another key for the cluster while runs go on, each file copied to all hosts before the next step:
      esault keys next.key --succeeds cluster.key    cluster.key accepts both now: copy it
                                                     then copy next.key as cluster.key
      esault keys cluster.key --retire               accepts the new one alone: copy it
    """
    from esault.cluster.key import make_key, make_role_key, retire, succeed

    if sum((role is not None, succeeds is not None, retires)) > 1:
        raise UsageError("--role, --succeeds and --retire: say one of them")
    if role is None and (cluster is not None or name is not None):
        raise UsageError("--of and --name belong to --role")
    if role is not None:
        if cluster is None:
            raise UsageError(f"--role {role}: say --of KEY, the cluster's key, which signs it")
        path = make_role_key(file, role, name or role, cluster)
        print(f"{path}: a key with the role {role}")
    elif succeeds is not None:
        path = succeed(file, succeeds)
        print(f"{path}: the key that follows {succeeds}, which accepts both now; copy {succeeds} to each host first")
    elif retires:
        path = retire(file)
        print(f"{path} accepts no other key any more; copy it to each host")
    else:
        path = make_key(file)
        print(f"{path}: the key of a new cluster; copy it to each host, readable by you alone, and name it with --key")
