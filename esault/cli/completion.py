"""`esault completion`, and what commands complete: running topologies, their units, policies."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from esault.counters import counted

if TYPE_CHECKING:
    from click.shell_completion import CompletionItem

    from esault.runtime.session.control_client import Running

__all__ = [
    "command",
    "complete_kept_runs",
    "complete_policies",
    "complete_runs",
    "complete_states",
    "complete_topology",
    "complete_units",
]

#: the shell sets it to ask for completions
VARIABLE = "_ESAULT_COMPLETE"


@click.command("completion")
@click.argument("shell", type=click.Choice(["bash", "zsh", "fish"]))
def command(shell: str) -> None:
    """Print what SHELL needs to complete commands, options, topologies, units, policies and runs.

    \b
    bash: eval "$(esault completion bash)" in ~/.bashrc
    zsh:  eval "$(esault completion zsh)" in ~/.zshrc
    fish: esault completion fish > ~/.config/fish/completions/esault.fish
    """
    from click.shell_completion import get_completion_class

    from esault.cli.main import cli

    found = get_completion_class(shell)
    assert found is not None
    print(found(cli, {}, "esault", VARIABLE).source())


def complete_topology(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Files: the shell knows them best."""
    return [_item(text, type="file")]


def complete_runs(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Names of running topologies, with their ids."""
    return [_item(each.name, help=each.run) for each in _running() if each.name.startswith(text)]


def complete_units(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Units of the running topologies, or of the one that `--run` names."""
    run = ctx.params.get("run")
    found = [each for each in _running() if run is None or each.name == run or each.run.startswith(run)]
    units: dict[str, dict[str, Any]] = {unit["name"]: unit for each in found for unit in each.status["units"]}
    return [
        _item(name, help=f"{unit['kind']}, {counted(unit['sub_units'], 'sub-unit')}")
        for name, unit in units.items()
        if name.startswith(text)
    ]


def complete_states(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Running topologies and units, which stand before a key; behind a topology its units."""
    named, run = ctx.params.get("named") or (), ctx.params.get("run")
    if not named:
        return [*complete_units(ctx, param, text), *(complete_runs(ctx, param, text) if run is None else [])]
    if run is None and len(named) == 1:
        ctx.params["run"] = named[0]
        return complete_units(ctx, param, text)
    return []


def complete_kept_runs(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Topologies of runs in the background, those that are over too."""
    from esault.runtime.session.detached import detached_runs

    names = {str(each.about.get("topology", "")): each.state for each in detached_runs()}
    return [_item(name, help=state) for name, state in names.items() if name and name.startswith(text)]


def complete_policies(ctx: click.Context, param: click.Parameter, text: str) -> list[CompletionItem]:
    """Policies; behind `UNIT=`, too."""
    from esault.elasticity.policy import POLICIES

    before, equals, name = text.rpartition("=")
    return [_item(f"{before}{equals}{each}") for each in POLICIES.names() if each.startswith(name)]


def _item(value: str, type: str = "plain", help: str | None = None) -> CompletionItem:
    from click.shell_completion import CompletionItem  # every command would load it

    return CompletionItem(value, type, help)


def _running() -> list[Running]:
    from esault.runtime.session.control_client import running

    return running()
