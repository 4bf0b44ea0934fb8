"""The list of requirements is whole, and a requirement is proven only by tests that pass."""

from tests.traceability import REQUIREMENTS, read_requirements, read_results

REPORT = """
<testsuites><testsuite>
  <testcase name="a"><properties><property name="req" value="R002-1"/></properties></testcase>
  <testcase name="b">
    <properties>
      <property name="req" value="R002-2"/><property name="req" value="R002-3"/>
    </properties>
    <failure message="no"/>
  </testcase>
  <testcase name="c">
    <properties><property name="req" value="R002-4"/></properties><skipped/>
  </testcase>
  <testcase name="d"><properties><property name="req" value="R002-3"/></properties></testcase>
</testsuite></testsuites>
"""


def test_the_list_holds_every_number_once():
    numbers = [row.number for row in read_requirements(REQUIREMENTS.read_text("utf-8"))]
    last = {"R001": 53, "R002": 90, "R003": 75, "R004": 66}
    wanted = [f"{source}-{n}" for source, count in last.items() for n in range(1, count + 1)]
    wanted.remove("R004-63")  # retired
    assert numbers == wanted


def test_failed_and_skipped_tests_prove_nothing():
    passed, failed = read_results([REPORT])
    assert passed - failed == {"R002-1"}


def test_a_row_says_what_it_waits_for():
    now, later = read_requirements("| R002-1 | Now | |\n| R002-87 | Later | server issue |\n")
    assert (now.later, later.later) == ("", "server issue")
