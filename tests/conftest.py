"""Options of the whole test run."""


def pytest_addoption(parser):
    parser.addoption("--no-skips", action="store_true", help="fail if any test was skipped")


def pytest_sessionfinish(session, exitstatus):
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = reporter.stats.get("skipped", []) if reporter else []
    if session.config.getoption("--no-skips") and skipped and exitstatus == 0:
        reporter.write_line(f"{len(skipped)} tests were skipped, which --no-skips does not allow", red=True)
        session.exitstatus = 1
