"""Growth where the work is the processor's: only onto cores that are there."""

from hypothesis import given
from hypothesis import strategies as st

from esault.elasticity.estimators.cores import affordable, waits
from esault.elasticity.view import RunView, Sample, UnitView
from esault.messages.probe import HostUsage
from esault.topology.plan import UnitPlan

FULL = HostUsage("here", cores=2, cpu=1.0)


def grown(samples, hosts=(FULL,), wanted=4, service=0.0):
    unit = UnitView("work", UnitPlan("work", "bolt"), tuple(Sample(i, **s) for i, s in enumerate(samples)))
    return affordable(RunView(0.0, 0.0, {"work": unit}, hosts=tuple(hosts)), unit, wanted, service)


def test_a_starved_process_is_no_process_that_waits():
    # Six foreign loops on two cores, measured on Linux 6.18: busy all the time, a fourth of it on a core.
    assert grown([{"busy": 0.98, "cpu": 0.28, "cpu_wait": 0.69}]) == 1
    # The same share of a core, and the rest of the time it waited for a service: a second one doubles the rate.
    assert grown([{"busy": 0.98, "cpu": 0.28, "cpu_wait": 0.01}]) == 4


def test_who_waits_is_known_by_what_the_system_counts():
    def waiting(*samples):
        return waits(UnitView("work", UnitPlan("work", "bolt"), tuple(Sample(i, **s) for i, s in enumerate(samples))))

    assert waiting({"busy": 0.98, "cpu": 0.28, "cpu_wait": 0.01})
    assert not waiting({"busy": 0.98, "cpu": 0.28, "cpu_wait": 0.69})
    assert not waiting({"busy": 0.98})  # nothing is counted
    assert not waiting({"busy": 0.05, "cpu": 0.02, "cpu_wait": 0.0})  # it has nothing to do


def test_where_the_system_does_not_count_it_processor_time_alone_decides():
    assert grown([{"busy": 0.98, "cpu": 0.9}]) == 1
    assert grown([{"busy": 0.98, "cpu": 0.1}]) == 4
    assert grown([{"busy": 0.98}]) == 4


def test_a_free_host_takes_as_many_as_its_cores_bear():
    free = HostUsage("there", cores=4, cpu=0.4)
    assert grown([{"busy": 1.0, "cpu": 0.5, "cpu_wait": 0.5}], hosts=(FULL, free), wanted=9) == 3


def test_a_process_may_need_a_core_while_user_code_is_seldom_called():
    # Windows of 100 000 keys on two cores, measured: the rest is reading, watermarks and closing.
    assert grown([{"busy": 0.19, "cpu": 0.98, "cpu_wait": 0.01}], hosts=[HostUsage("here", 2, 0.8)]) == 1
    assert grown([{"busy": 0.02, "cpu": 0.43, "cpu_wait": 0.43}] * 3, hosts=[HostUsage("here", 2, 0.94)], wanted=9) == 3


def test_half_a_core_is_worth_a_second_sub_unit_where_tuples_are_heavy():
    # Documents of 10 kB on two cores, measured: a third of a core reads them, one changes them; two changed 1.4 times as many.
    heavy, host = {"busy": 0.98, "cpu": 0.98, "cpu_wait": 0.01}, [HostUsage("here", 2, 0.68)]
    assert grown([heavy], host, service=150e-6) == 2
    # Counting words on the same cores, measured: two sub-units took half as much processor time again, and as long.
    assert grown([heavy], host, service=0.5e-6) == 1
    # Beside three it is not worth a change.
    assert grown([heavy] * 3, [HostUsage("here", 4, 0.75)], service=150e-6) == 3


def test_heavy_tuples_take_their_part_of_cores_that_others_keep_busy():
    # Six foreign loops on two cores, measured: two sub-units got 1.6 times as many documents done, for the same processor time.
    starved = {"busy": 0.6, "cpu": 0.25, "cpu_wait": 0.74}
    assert grown([starved], service=150e-6) == 2
    assert grown([starved], service=1e-6) == 1
    # The run itself takes both cores by now.
    assert grown([starved] * 2, service=150e-6) == 2


def test_what_other_units_of_the_run_take_is_no_core_for_a_heavy_one():
    unit = UnitView("work", UnitPlan("work", "bolt"), (Sample(1, cpu=0.5, cpu_wait=0.5),))
    other = UnitView("other", UnitPlan("other", "bolt"), (Sample(2, cpu=0.5, cpu_wait=0.5),))
    view = RunView(0.0, 0.0, {"work": unit, "other": other}, hosts=(FULL,))
    assert affordable(view, unit, 4, 1e-3) == 1


def test_one_that_has_nothing_to_do_says_nothing():
    assert grown([{"busy": 0.1, "cpu": 0.1, "cpu_wait": 0.05}]) == 4


@given(
    st.lists(
        st.fixed_dictionaries(
            {"busy": st.floats(0, 1), "cpu": st.none() | st.floats(0, 1), "cpu_wait": st.none() | st.floats(0, 1)}
        ),
        min_size=1,
    ),
    st.floats(0, 1),
    st.integers(1, 64),
    st.integers(0, 64),
    st.sampled_from([0.0, 1e-3]),
)
def test_never_more_than_wanted_and_never_fewer_than_there_are(samples, cpu, cores, more, service):
    wanted = len(samples) + more
    assert len(samples) <= grown(samples, [HostUsage("here", cores, cpu)], wanted, service) <= wanted
