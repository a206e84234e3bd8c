# make run    the main job: counts the words of Python's standard library, live, lands them, shows a unit that grows under
#             load, and reports with Spark
# make test   formatting, types and all tests, on a fresh machine
# make test-deep  the same with all examples and seeds that tests ask for: `make test` takes some of them
# make quick  formatting, types and the unit tests that need no other process, in less than a minute; what to run while writing
# make coverage  which branches of each room the unit tests take, beside the floor that is kept in tests/coverage.json
# make test-again  what failed in the last run once more, one after another
# make test-oldest  the unit tests with the oldest versions that setup.cfg allows (PYTHON=python3.10 for the oldest Python)
# make test-newest  the same with the newest versions that it allows
# make audit  known vulnerabilities of all that the extras bring (pip-audit; needs PyPI itself)
# make bench  throughput and latency beside a peer, into bench/results/local
# make soak   does FAULTS=2000 faults to a run under load and counts, into bench/results/local
# make durations  runs all tests and writes down how long files and tests take: which run first, and which `make quick` leaves out
# make processor  runs TESTS (all) and lists the processor seconds of files and tests, with all processes that they start
# make release  builds wheel, source, docs, bill of materials and checksums in dist, tries the wheel, and says what would be uploaded
# make docs   the pages of docs/ as a site in out/site, which works from a file: searchable, links checked
# make clean  removes what the others made

VENV ?= .venv
FAULTS ?= 2000
BIN := $(VENV)/bin
# files of tests that run at a time: those that run processes wait for much of their time, so there are more than cores
JOBS ?= 4
# these compute, and each worker imports and collects all of them first
QUICK_JOBS ?= 2
PYTEST := $(BIN)/python -m pytest -q --dist loadfile --no-loadscope-reorder
# without runs of Spark, hosts, real processes and whole benches
QUICK := tests/unit tests/peers --ignore=tests/unit/spark/engine --ignore=tests/unit/bench
export VENV
# Tests start hundreds of Pythons, each of which would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: run test tests prepared-tests style types spark-classes bytecode processor test-again test-deep test-oldest test-newest audit durations quick coverage lint bench soak release docs clean

run:
	@.ci/venv parquet
	@$(BIN)/esault run topologies/standard_library.py --report out/report.json
	@$(BIN)/python topologies/standard_library.py
ifneq ($(RUSH),0)
	@echo "A rush hour comes next: 20 seconds in which a unit grows under load and shrinks after (make run RUSH=0 skips it)."
	@$(BIN)/esault run topologies/rush_hour.py --report out/rush_hour.json
endif
ifneq ($(SPARK),0)
	@echo "Spark's report comes next. It needs pyspark and a Java, one download of about 500 MB (make run SPARK=0 skips it)."
	@.ci/venv parquet,spark
	@$(BIN)/esault analyze topologies/standard_library.py --plot out/plots
endif

# Spark starts in two thirds of the time on classes that are kept, and tests begin at once where their bytecode is: on a fresh
# clone each worker would compile all of it, and each have Hypothesis look at all characters of Unicode, for three seconds. mypy,
# which takes a minute of one processor there, runs beside all of that.
test:
	@.ci/venv parquet,spark,bench,test
	@$(MAKE) -s -j4 style types prepared-tests

prepared-tests: spark-classes bytecode
	@$(MAKE) -s tests

tests:
	@ESAULT_CLASS_ARCHIVE=`cat out/spark-classes` $(PYTEST) -n $(JOBS)

spark-classes:
	@mkdir -p out
	@$(BIN)/python tests/shared/spark_classes.py && echo on > out/spark-classes || echo off > out/spark-classes

bytecode:
	@ls tests/__pycache__/conftest.*pytest*.pyc > /dev/null 2>&1 || \
		$(BIN)/python -m pytest -q --collect-only -p no:cacheprovider tests > /dev/null
	@ls .hypothesis/unicode_data/*/codec-* > /dev/null 2>&1 || \
		$(BIN)/python -c "from hypothesis.strategies import text; text().validate()"

test-again:
	@$(PYTEST) -n 0 --last-failed --last-failed-no-failures none

# A Spark that Delta Lake has a jar for: 0.5 GB, once for a machine.
test-deep: lint
	@$(BIN)/python tests/shared/delta_spark.py || echo "no Spark for Delta Lake: its tests are skipped"
	@HYPOTHESIS_PROFILE=deep $(PYTEST) -n $(JOBS)

durations: lint
	@ESAULT_DURATIONS=1 $(PYTEST) -n $(JOBS)
	@HYPOTHESIS_PROFILE=quick ESAULT_PROOF=2 ESAULT_DURATIONS=long $(PYTEST) -n $(QUICK_JOBS) -m "not slow" $(QUICK)

# Judge a test by these on a machine that does other things, too: they say what `make test` costs.
processor: spark-classes
	@ESAULT_CLASS_ARCHIVE=`cat out/spark-classes` ESAULT_DURATIONS=processor $(PYTEST) -n $(QUICK_JOBS) $(TESTS)
	@head -40 out/processor.txt

# Hypothesis takes a tenth of the examples. mypy keeps what it knows, and looks at what has changed.
quick: lint
	@HYPOTHESIS_PROFILE=quick ESAULT_PROOF=2 $(PYTEST) -n $(QUICK_JOBS) -m "not slow and not long" $(QUICK)

# Without Spark: its tests are none of these.
test-oldest:
	@mkdir -p out
	@python3 .ci/oldest parquet,hosts,learn,sketches,metrics,test > out/oldest.txt
	@VENV=.venv-oldest PIP_CONSTRAINT=$(CURDIR)/out/oldest.txt .ci/venv parquet,hosts,learn,sketches,metrics,test
	@HYPOTHESIS_PROFILE=quick ESAULT_PROOF=2 $(subst $(VENV)/,.venv-oldest/,$(PYTEST)) -n $(QUICK_JOBS) \
		-m "not slow" $(QUICK) --ignore=tests/unit/spark

test-newest:
	@rm -rf .venv-newest
	@VENV=.venv-newest .ci/venv parquet,hosts,learn,sketches,metrics,test
	@HYPOTHESIS_PROFILE=quick ESAULT_PROOF=2 $(subst $(VENV)/,.venv-newest/,$(PYTEST)) -n $(QUICK_JOBS) \
		-m "not slow" $(QUICK) --ignore=tests/unit/spark

# Every extra that a user may install. --strict: a package that nothing is known of is no package without vulnerabilities.
audit:
	@mkdir -p out
	@VENV=.venv-audit .ci/venv parquet,hosts,learn,sketches,otlp,metrics,kafka,delta,cron,http,mqtt,nats,rabbitmq,redis,s3,postgres,spark
	@test -x .venv-audit-tools/bin/pip-audit || \
		(python3 -m venv .venv-audit-tools && .venv-audit-tools/bin/pip install -q pip-audit)
	@.venv-audit/bin/pip list --format freeze --exclude esault --exclude-editable > out/audited.txt
	@.venv-audit-tools/bin/pip-audit --strict --no-deps --disable-pip -r out/audited.txt

# RENEW=--renew writes the floors anew.
coverage:
	@.ci/venv parquet,spark,bench,test
	@HYPOTHESIS_PROFILE=quick ESAULT_PROOF=2 $(PYTEST) -n $(QUICK_JOBS) -m "not slow" $(QUICK) \
		--cov --cov-branch --cov-report=json:out/coverage.json --cov-report=
	@$(BIN)/python tests/coverage_floor.py out/coverage.json $(RENEW)

lint:
	@.ci/venv parquet,spark,bench,test
	@$(MAKE) -s style
	@$(MAKE) -s types

style:
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .

types:
	@$(BIN)/mypy

bench:
	@.ci/venv parquet,spark,bench,test
	@$(BIN)/esault bench throughput --out bench/results/local
	@$(BIN)/esault bench latency --out bench/results/local

soak:
	@.ci/venv parquet,spark,bench,test
	@$(BIN)/python -m bench.faults --runs $(FAULTS) --out bench/results/local

# RELEASE="--sign KEY --upload URL" signs and uploads.
release:
	@.ci/venv release,docs
	@$(BIN)/python .ci/release $(RELEASE)

docs:
	@.ci/venv docs
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build -q
	@echo "out/site/index.html"

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest .venv-audit .venv-audit-tools out build dist *.egg-info
