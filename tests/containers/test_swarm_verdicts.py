"""What is said of a compose file that is for a Swarm, compared with what a real Swarm does."""

import asyncio
import json

import pytest

from tests.kit.runner_conformance import DEADLINE_SECONDS, RecordedReports, assigned, claimed
from tests.support.stages import compose_text, files_of, opened_runner, service, stage_spec
from tidewheel.config import ALLOWABLE
from tidewheel.core.queue.requests import Ending
from tidewheel.core.queue.task import TaskId
from tidewheel.formats.sip import compose_keys
from tidewheel.runners.containers.docker_cli import Cli
from tidewheel.runners.containers.engines import SwarmEngine
from tidewheel.runners.containers.placement import constraint_is_readable
from tidewheel.runners.containers.project import ProjectPlan, Tags
from tidewheel.runners.containers.swarm_keys import refused, swarm_troubles

# A value for each key of a service; several where they differ for a Swarm.
VALUES = {
    **{"annotations": [{"a": "b"}], "attach": [False], "blkio_config": [{"weight": 300}]},
    **{"cap_add": [["NET_ADMIN"]], "cap_drop": [["ALL"]], "cgroup": ["host"]},
    **{"cgroup_parent": ["/x"], "command": ["true"], "configs": [["given"]]},
    **{"cpu_count": [1], "cpu_percent": [50], "cpu_period": ["100ms"], "cpu_quota": ["50ms"]},
    **{"cpu_rt_period": ["100ms"], "cpu_rt_runtime": ["10ms"], "cpu_shares": [5]},
    **{"cpus": [0.5], "cpuset": ["0"], "device_cgroup_rules": [["c 1:3 mr"]]},
    "deploy": [
        {"mode": "global"},
        {"mode": "replicated-job"},
        {"endpoint_mode": "vip"},
        {"labels": {"a": "b"}},
        {"replicas": 2},
        {"update_config": {"failure_action": "anything", "parallelism": 1}},
        {"rollback_config": {"order": "start-first"}},
        {"restart_policy": {"condition": "anything"}},
        {"resources": {"limits": {"cpus": 0.5}, "reservations": {"memory": "32M"}}},
        {"resources": {"limits": {"pids": 50}}},
        {"resources": {"reservations": {"devices": [{"capabilities": ["gpu"]}]}}},
        {"placement": {"preferences": [{"spread": "node.labels.x"}]}},
        {"placement": {"max_replicas_per_node": 1}},
    ],
    **{"devices": [["/dev/null:/dev/x"]], "dns": [["1.1.1.1"]], "dns_opt": [["ndots:2"]]},
    **{"dns_search": [["example.org"]], "domainname": ["example.org"], "entrypoint": ["env"]},
    **{"environment": [{"A": "1"}, ["A=1"]], "expose": [["80"]], "external_links": [["x"]]},
    **{
        "extra_hosts": [["a:10.1.1.1"], {"a": "10.1.1.1"}],
        "gpus": ["all"],
        "group_add": [["7"]],
    },
    "healthcheck": [
        {"test": "true", "interval": "5s"},
        {"test": "true", "start_interval": "5s"},
    ],
    **{"hostname": ["a"], "init": [True, False], "ipc": ["host", "private", "service:other"]},
    **{"isolation": ["default"], "labels": [{"a": "b"}], "links": [["other"], ["other:db"]]},
    **{"logging": [{"driver": "json-file"}], "mac_address": ["02:42:ac:11:65:43"]},
    **{"mem_limit": ["64m"], "mem_reservation": ["32m"], "mem_swappiness": [10]},
    **{"memswap_limit": ["128m"], "network_mode": ["host", "bridge", "none", "service:other"]},
    "networks": [
        *(
            {"inner": {"aliases": ["a"]}},
            {"inner": {"priority": 5}},
            {"inner": None},
            ["inner"],
        ),
        *({"inner": {"link_local_ips": ["169.254.8.8"]}}, {"inner": {"mac_address": "x"}}),
        *({"inner": {"driver_opts": {"a": "b"}}}, {"inner": {"gw_priority": 1}}),
        {"inner": {"interface_name": "eth7"}},
    ],
    **{"oom_kill_disable": [True], "oom_score_adj": [100], "pid": ["host", "service:other"]},
    **{"pids_limit": [100], "platform": ["linux/amd64"]},
    "ports": [
        ["8080:80"],
        [{"target": 80, "name": "a"}],
        [{"target": 80, "host_ip": "127.0.0.1"}],
    ],
    **{"privileged": [True, False], "pull_policy": ["never"], "read_only": [True]},
    **{"runtime": ["runc"], "scale": [2], "secrets": [["given"]], "shm_size": ["64m"]},
    **{"security_opt": [["no-new-privileges:true"]], "stdin_open": [True]},
    **{"stop_grace_period": ["3s"], "stop_signal": ["SIGINT"], "sysctls": [{"net.a": "1"}]},
    **{"tmpfs": [["/run"], "/run"], "tty": [True], "ulimits": [{"nofile": 1024}]},
    **{"use_api_socket": [True], "user": ["7"], "userns_mode": ["host"], "uts": ["host"]},
    **{"volumes": [["data:/data"], ["/x"], [{"type": "tmpfs", "target": "/x"}]]},
    **{"volumes_from": [["other"]], "working_dir": ["/tmp"]},
}
# What docker-compose has put in place before a Swarm sees it, or the runner has taken out.
DONE_BEFORE = {"build", "container_name", "depends_on", "env_file", "extends", "image"}
DONE_BEFORE |= {"label_file", "profiles", "restart"}
# The Swarm reads a file whole, and says what it makes of it, before it looks for this network.
ABSENT = {"absent": {"external": True, "name": "nobody-made-this"}}
READ = "could not be found"
IGNORED = "Ignoring unsupported options"
NETWORKS = [
    *(
        {},
        {"driver": "overlay"},
        {"internal": True},
        {"attachable": True},
        {"driver": "bridge"},
    ),
    *({"enable_ipv6": True}, {"ipam": {"config": [{"subnet": "10.99.0.0/16"}]}}),
    {"ipam": {"config": [{"subnet": "10.98.0.0/16", "gateway": "10.98.0.9"}]}},
    {"ipam": {"options": {"a": "b"}}},
]


def cases():
    for key, values in VALUES.items():
        for value in values:
            yield {"services": {"work": {"image": "busybox:test", key: value}}}
    for body in NETWORKS:
        work = {"image": "busybox:test", "networks": ["inner"]}
        yield {"services": {"work": work}, "networks": {"inner": body}}


def whole(document):
    """With all that a case may name, and a service in a network that is not there."""
    services = {
        **document["services"],
        "other": {"image": "busybox:test"},
        "last": {"image": "busybox:test", "networks": ["absent"]},
    }
    given = {"given": {"external": True}}
    sections = {"volumes": {"data": {}}, "secrets": given, "configs": given}
    networks = {"inner": {}, **document.get("networks", {}), **ABSENT}
    return {"version": "3.8", "services": services, "networks": networks, **sections}


def fitted(document, tmp_path):
    """As the runner hands it to a Swarm."""
    task = claimed(command="true", spec="{}", max_termination_seconds=1.0)
    tags = Tags(runner="swarm", project="tw-x", store="s", task_id=TaskId("t"), attempt=1)
    plan = ProjectPlan(tags=tags, prefix="x", parts={}, needs={})
    made = json.loads(json.dumps(document))
    SwarmEngine(Cli({"PATH": "/usr/local/bin:/usr/bin:/bin"})).fit(
        made, plan, assigned(task, tmp_path)
    )
    return made


def test_every_key_of_a_service_is_tried_on_a_swarm():
    service_keys = compose_keys.SERVICE
    known = (service_keys.known.keys() | service_keys.newer) - service_keys.unrun
    assert known - DONE_BEFORE == VALUES.keys() - DONE_BEFORE


@pytest.mark.req("R004-49", "R004-50")
def test_a_swarm_takes_what_is_said_to_run_on_it_and_does_not_take_what_is_refused(
    swarm, tmp_path
):
    """Nothing is made: before that, the Swarm says what it refuses and what it ignores."""
    manager, _ = swarm
    file = tmp_path / "compose.json"

    def said(document):
        file.write_text(json.dumps(document))
        return manager.said("stack", "deploy", "--compose-file", str(file), "tw-x")

    false_hopes, false_alarms = [], []
    for case in cases():
        document, shown = whole(case), json.dumps(case)
        if refused(swarm_troubles(document)):
            words = said(document)
            is_of_host = '"driver": "bridge"' in shown or "links" in shown  # told when made
            if READ in words and IGNORED not in words and not is_of_host:
                false_alarms.append(f"{shown}: {words}")
        else:
            words = said(fitted(document, tmp_path))
            if READ not in words or IGNORED in words:
                false_hopes.append(f"{shown}: {words}")
    assert (false_hopes, false_alarms) == ([], [])


# As a Swarm reads them; of those that it reads, some are met by no node.
CONSTRAINTS = (
    *("node.role == worker", "node.role==worker", " node.role  !=  manager ", "node.role"),
    *("node.labels.a == 'x'", "node.labels.a == x y", "node.labels.a == a/b", "a == b == c"),
    *("node.labels.a = 1", "node.labels.a/b == 1", "node.labels.a ==", "== 1", "1a == 1", ""),
    *("engine.labels.a != 00", "Node.Role == worker", "node.platform.os == linux", "a != é"),
)
NOBODY_IS = ("node.zone == a", "node.labels. == a", "a == b == c")


def test_a_constraint_is_readable_if_a_swarm_reads_it_and_some_node_may_meet_it(swarm):
    manager, _ = swarm
    words = ("service", "create", "--detach", "--replicas", "0", "--constraint")
    taken = [one for one in CONSTRAINTS if manager.succeeds(*words, one, "busybox:test")]
    assert list(filter(constraint_is_readable, CONSTRAINTS)) == [
        one for one in taken if one not in NOBODY_IS
    ]
    assert len(taken) > 5 and not any(map(constraint_is_readable, NOBODY_IS))
    manager.clear()


def played(engine, tmp_path, text, kind="swarm"):
    async def play():
        task = claimed(command="true", spec=stage_spec(kind, text))
        assignment = assigned(task, tmp_path)
        reports = RecordedReports()
        async with opened_runner(kind, engine, tuple(ALLOWABLE)) as runner:
            job = await runner.start(assignment, reports)
            async with asyncio.timeout(DEADLINE_SECONDS):
                end = await job.wait()
        return end, files_of(assignment.directory), reports

    return asyncio.run(play())


def test_a_service_of_a_swarm_has_the_network_of_the_host_and_the_shared_memory_it_asks_for(
    swarm, tmp_path
):
    """A Swarm itself would leave out both, and start the containers."""
    text = compose_text(
        a=service("cat /proc/net/dev", network_mode="host"),
        b=service("df -k /dev/shm", shm_size="16m"),
    )
    end, files, _ = played(swarm[0], tmp_path, text)
    assert end.ending is Ending.SUCCEEDED, end
    assert " va:" in files["service-a.log"] or " vb:" in files["service-a.log"]
    assert " 16384 " in files["service-b.log"]


def test_what_a_swarm_would_leave_out_is_refused_where_containers_would_be_others(
    swarm, tmp_path
):
    text = compose_text(
        a=service("true", privileged=True, group_add=["7"], network_mode="none")
    )
    end, _, _ = played(swarm[0], tmp_path, text)
    assert end.ending is Ending.FAILED
    for key in ("privileged", "group_add", "network_mode"):
        assert f"services.a.{key}: a Swarm " in end.error.description, end.error


def using(**sections):
    """A stage of one service that uses a network, a volume and so on, each called `lab`."""
    uses = {kind: ["lab:/lab" if kind == "volumes" else "lab"] for kind in sections}
    document = json.loads(compose_text(a=service("true", **uses)))
    return json.dumps(document | {kind: {"lab": body} for kind, body in sections.items()})


OVERLAY = ("network", "create", "--driver", "overlay")


@pytest.mark.req("R004-50")
def test_what_nothing_makes_is_named_with_the_command_that_makes_it_and_then_the_stage_runs(
    swarm, tmp_path
):
    """Before any container is made: an engine of its own, and a Swarm."""
    manager, _ = swarm
    text = using(networks={"external": True}, volumes={"external": {"name": "all-sky"}})
    end, _, _ = played(manager, tmp_path / "1", text, "compose")
    lacking = (
        "network lab does not exist on the engine of this worker (docker network create lab)",
        "volume all-sky does not exist on the engine of this worker "
        "(docker volume create all-sky)",
    )
    assert (end.ending, end.error.code) == (Ending.FAILED, "refused")
    assert all(one in end.error.description for one in lacking), end.error
    manager.docker("network", "create", "lab")
    manager.docker("volume", "create", "all-sky")
    end, _, _ = played(manager, tmp_path / "2", text, "compose")
    assert end.ending is Ending.SUCCEEDED, end
    end, _, _ = played(manager, tmp_path / "3", using(networks={"external": True}))
    wanted = "network lab belongs to a single engine, and services of a Swarm cannot join it"
    assert wanted in str(end)
    manager.docker("network", "rm", "lab")
    manager.docker(*OVERLAY, "lab")
    given = using(networks={"external": True}, secrets={"external": True, "name": "key"})
    end, _, _ = played(manager, tmp_path / "4", given)
    assert "secret key does not exist on the Swarm of this worker (docker secret" in str(end)
    assert "network lab" not in str(end)
    (tmp_path / "key").write_text("42")
    manager.docker("secret", "create", "key", str(tmp_path / "key"))
    end, _, _ = played(manager, tmp_path / "5", given)
    assert end.ending is Ending.SUCCEEDED, end
    end, _, _ = played(manager, tmp_path / "6", text, "compose")
    assert "network lab belongs to a Swarm, and was made without --attachable" in str(end)
    manager.docker("network", "rm", "lab")
    manager.docker("secret", "rm", "key")
    manager.docker("volume", "rm", "all-sky")
