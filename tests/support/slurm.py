"""A real Slurm of three nodes on this machine: its own munge, controller and node daemons.

Whatever it started is gone when it is left: daemons, and every process of every job.
"""

from __future__ import annotations

import os
import pwd
import re
import secrets
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tests.support.patience import allowed, eventually
from tests.support.ports import free_port
from tests.support.slurm_binaries import program

NODES = ("n1", "n2", "n3")
CPUS_PER_NODE = 4
IDS_PER_CONTROLLER = 500
START_SECONDS_MAX = 90.0
MARK = "TIDEWHEEL_TEST_SLURM"  # in the environment of all that a node starts
MEMORY_CGROUP = Path("/sys/fs/cgroup/memory/memory.limit_in_bytes")

CONFIGURATION = """\
ClusterName=t
SlurmctldHost=localhost(127.0.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/munge
AuthInfo=socket={folder}/munge/munge.sock
CredType=cred/munge
SlurmctldPort={controller_port}
StateSaveLocation={folder}/state
SlurmdSpoolDir={folder}/spool.%n
SlurmctldPidFile={folder}/controller.pid
SlurmdPidFile={folder}/%n.pid
SlurmctldLogFile={folder}/log/controller
SlurmdLogFile={folder}/log/%n
ProctrackType=proctrack/linuxproc
TaskPlugin=task/{task_plugin}
SelectType=select/cons_tres
SelectTypeParameters=CR_Core_Memory
SchedulerType=sched/backfill
SchedulerParameters=sched_interval=1,bf_interval=1,batch_sched_delay=0,sched_min_interval=1
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherFrequency=1
AccountingStorageType=accounting_storage/none
MpiDefault=none
ReturnToService=2
SlurmctldTimeout=30
# On a busy machine whatever is slow looks dead, and a message that was given up is sent again
# after a minute. Programs look for a controller that is gone as long as for an answer.
SlurmdTimeout=120
BatchStartTimeout=120
MessageTimeout=10
KillWait=2
MinJobAge=60
DefMemPerCPU=100
FirstJobId={first_id}
SlurmdParameters=config_overrides
DebugFlags=NO_CONF_HASH
{nodes}
PartitionName=main Nodes={names} Default=YES MaxTime=INFINITE State=UP
PartitionName=small Nodes=n1 MaxTime=INFINITE State=UP
"""
MEMORY_LIMITS = """\
CgroupPlugin=cgroup/v1
CgroupMountpoint=/sys/fs/cgroup
ConstrainRAMSpace=yes
ConstrainSwapSpace=yes
AllowedSwapSpace=0
"""


class SlurmCluster:
    """Daemons in the foreground, each a child of this process."""

    def __init__(self, folder: Path, *, limits_memory: bool = False) -> None:
        self.folder = folder
        self.configuration = folder / "slurm.conf"
        self._limits_memory = limits_memory
        self._daemons: dict[str, subprocess.Popen[bytes]] = {}
        self._was_broken = False
        # Control groups are named by it, and clusters beside us may have theirs.
        self._first_id = secrets.randbelow(6_000) * 10_000 + 1
        self._last_id = 0  # jobs up to here are those of earlier tests

    @property
    def environment(self) -> dict[str, str]:
        """What a program needs to speak to this Slurm."""
        return {"SLURM_CONF": str(self.configuration)}

    def ask(self, name: str, *arguments: str, seconds_max: float = 60.0) -> str:
        """What one of Slurm's programs answers."""
        done = subprocess.run(
            [program(name), *arguments],
            env=os.environ | self.environment,
            capture_output=True,
            timeout=allowed(seconds_max),
            check=True,
        )
        return done.stdout.decode()

    def states(self) -> dict[str, str]:
        """Every job that Slurm remembers, and its state."""
        said = self.ask("squeue", "--noheader", "--states=all", "--format=%i %T")
        return dict(line.split() for line in said.splitlines())

    def named(self, beginning: str) -> dict[str, str]:
        """The states of jobs with names that begin so, since the cluster was last mended."""
        said = self.ask("squeue", "--noheader", "--states=all", "--format=%i %T %j")
        rows = (line.split(" ", 2) for line in said.splitlines())
        return {
            job_id: state
            for job_id, state, name in rows
            if name.startswith(beginning) and int(job_id) > self._last_id
        }

    def only(self, beginning: str) -> str:
        """The one job whose name begins so."""
        [job_id] = self.named(beginning)
        return job_id

    def start(self) -> None:
        self._write_files()
        self.start_munge()
        self._start_missing()
        eventually(self.is_idle, self.told("three idle nodes"), START_SECONDS_MAX)

    def is_idle(self) -> bool:
        try:
            return self.ask("sinfo", "--noheader", "-N", "-p", "main", "-o", "%T").split() == [
                "idle"
            ] * len(NODES)
        except subprocess.CalledProcessError:
            return False

    def start_munge(self) -> None:
        munge = self.folder / "munge"
        self._start(
            "munge",
            [
                program("munged"),
                "--foreground",
                f"--key-file={munge}/key",
                f"--socket={munge}/munge.sock",
                f"--pid-file={munge}/pid",
                f"--log-file={munge}/log",
                f"--seed-file={munge}/seed",
            ],
            user="munge",
        )
        eventually((munge / "munge.sock").exists, "munge listens")

    def start_controller(self) -> None:
        """With what it knew before, if it was there before.

        What it did not save is lost, numbers of jobs too; nodes refuse a number that they have
        seen. So it begins with higher ones.
        """
        self._first_id += IDS_PER_CONTROLLER
        text = self.configuration.read_text()
        numbered = re.sub(r"(?m)^FirstJobId=.*$", f"FirstJobId={self._first_id}", text)
        whole = self.configuration.with_suffix(".new")
        whole.write_text(numbered)
        whole.replace(self.configuration)  # somebody reads it at any moment
        self._start("controller", [program("slurmctld"), "-D", "-i"])

    def kill_controller(self) -> None:
        self._kill("controller")

    def start_node(self, node: str) -> None:
        self._start(
            node, [program("slurmd"), "-D", "-N", node], {MARK: f"{self.folder}/{node}"}
        )

    def kill_node(self, node: str) -> None:
        """As a power cut: its daemon and all processes of its jobs.

        Slurm is told, as by those who watch a site's power: to find out by itself it had to
        have so little patience that it took a node on a busy machine for dead, too.
        """
        self._kill(node)
        self._kill_all_of(node)
        self.ask("scontrol", "update", f"NodeName={node}", "State=DOWN", "Reason=power")

    def mend(self) -> None:
        """Bring back what a test has killed, and end what it has left."""
        self._start_missing()
        eventually(self._has_cancelled, "every job is cancelled")
        eventually(self._has_recovered, self.told("three idle nodes"), START_SECONDS_MAX)
        if self._was_broken:
            # Nodes have yet to tell a new controller what they run: what begins meanwhile may
            # be taken for lost.
            eventually(self._runs_jobs, self.told("a job on all nodes"), START_SECONDS_MAX)
            self._was_broken = False
        self._last_id = max(map(int, self.states()), default=self._last_id)

    def _start_missing(self) -> None:
        """Whoever was never started, was killed by a test, or has given up."""
        for name in ("controller", *NODES):
            daemon = self._daemons.get(name)
            if daemon is not None and daemon.poll() is None:
                continue
            self._was_broken |= daemon is not None
            if name == "controller":
                self.start_controller()
            else:
                self.start_node(name)

    def told(self, what: str) -> Callable[[], str]:
        """The same, with what Slurm itself shows when it did not come true."""

        def told() -> str:
            with suppress(subprocess.SubprocessError):
                shown = self.ask("scontrol", "--oneliner", "show", "nodes")
                shown += self.ask("scontrol", "--oneliner", "show", "jobs")
                return f"{what}; Slurm shows\n{shown}"
            return f"{what}; Slurm does not answer, see {self.folder}/log"

        return told

    def _has_recovered(self) -> bool:
        """A node that was too slow for Slurm on a busy machine is drained: take it back."""
        with suppress(subprocess.CalledProcessError):
            self.ask("scontrol", "update", f"NodeName={','.join(NODES)}", "State=RESUME")
        return self.is_idle()

    def _has_cancelled(self) -> bool:
        try:
            self.ask("scancel", "--quiet", f"--user={os.getuid()}")
        except subprocess.CalledProcessError:
            return False
        return True

    def end(self) -> None:
        for name in list(self._daemons):
            self._kill(name)
        for node in NODES:
            self._kill_all_of(node)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(
        self,
        name: str,
        command: list[str],
        environment: Mapping[str, str] | None = None,
        user: str | None = None,
    ) -> None:
        account = pwd.getpwnam(user) if user else None
        with open(self.folder / "log" / f"{name}.printed", "ab") as log:
            self._daemons[name] = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd="/",
                env=os.environ | self.environment | dict(environment or {}),
                user=account.pw_uid if account else None,
                group=account.pw_gid if account else None,
                extra_groups=[] if account else None,
                start_new_session=True,
            )

    def _runs_jobs(self) -> bool:
        try:
            self.ask(
                "sbatch",
                *("--wait", f"--nodes={len(NODES)}", "--exclusive", "--no-requeue"),
                *("--output=/dev/null", "--wrap=sleep 0.2"),
                seconds_max=15.0,
            )
        except (subprocess.CalledProcessError, subprocess.TimeoutExpired):
            self._has_cancelled()
            return False
        return True

    def _kill(self, name: str) -> None:
        self._was_broken = True
        daemon = self._daemons.pop(name)
        daemon.kill()
        daemon.wait()

    def _kill_all_of(self, node: str) -> None:
        """Jobs may start others while we look: until there are none."""
        daemon = f"{MARK}={self.folder}/{node}".encode()
        job = {f"SLURM_CONF={self.configuration}".encode(), f"SLURMD_NODENAME={node}".encode()}
        eventually(lambda: not _kill_those_with({daemon}, job), f"{node} is dead")

    def _write_files(self) -> None:
        self.folder.chmod(0o755)
        for name in ("state", "log", "munge", *(f"spool.{node}" for node in NODES)):
            (self.folder / name).mkdir()
        munge = pwd.getpwnam("munge")
        key = self.folder / "munge" / "key"
        key.write_bytes(os.urandom(1024))
        key.chmod(0o400)
        for path in (key, key.parent):
            os.chown(path, munge.pw_uid, munge.pw_gid)
        key.parent.chmod(0o755)
        self.configuration.write_text(self._configuration())
        if self._limits_memory:
            (self.folder / "cgroup.conf").write_text(MEMORY_LIMITS)

    def _configuration(self) -> str:
        host = socket.gethostname().partition(".")[0]
        controller_port, *ports = (free_port() for _ in (0, *NODES))
        nodes = [
            f"NodeName={node} NodeHostname={host} NodeAddr=127.0.0.1 Port={port} "
            f"CPUs={CPUS_PER_NODE} RealMemory=4000 State=UNKNOWN"
            for node, port in zip(NODES, ports, strict=True)
        ]
        return CONFIGURATION.format(
            folder=self.folder,
            controller_port=controller_port,
            task_plugin="cgroup" if self._limits_memory else "none",
            first_id=self._first_id,
            nodes="\n".join(nodes),
            names=",".join(NODES),
        )


@contextmanager
def slurm_cluster(*, limits_memory: bool = False) -> Iterator[SlurmCluster]:
    """A cluster for the length of a `with` block.

    One that limits memory uses control groups of the kernel, which all Slurms of a machine
    share by name: two at once get into each other's way.
    """
    folder = Path(tempfile.mkdtemp(prefix="tidewheel-slurm-", dir="/tmp"))
    cluster = SlurmCluster(folder, limits_memory=limits_memory)
    try:
        cluster.start()
        yield cluster
    finally:
        cluster.end()


def _kill_those_with(*marks: set[bytes]) -> int:
    """Kill whoever has all of one of these in its environment; how many there were."""
    found = 0
    for folder in Path("/proc").iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):
            variables = set((folder / "environ").read_bytes().split(b"\0"))
            if any(mark <= variables for mark in marks):
                os.kill(int(folder.name), signal.SIGKILL)
                found += 1
    return found
