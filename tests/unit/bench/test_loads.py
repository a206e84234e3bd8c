from __future__ import annotations


def test_a_load_says_how_many_results_a_correct_run_puts_out(tmp_path):
    from bench.loads import make, read

    load = make("records", 250, tmp_path)
    rows = read(str(load.path)) * load.passes
    assert load.count == load.tuples == len(rows) == 250
    assert load.results == sum((value + 1) % 2 == 0 for _, value in rows)


def test_a_load_of_sentences_is_counted_in_words(tmp_path):
    from bench.loads import make, read

    load = make("sentences", 30, tmp_path)
    rows = read(str(load.path))
    assert load.results == load.tuples == sum(len(line.split()) for _, line in rows) == 300
    assert {key for key, _ in rows} == {None}


def test_a_large_load_is_the_same_rows_again_and_again(tmp_path):
    from bench.loads import DISTINCT, make, read

    load = make("sentences", 3 * DISTINCT["sentences"], tmp_path)
    assert load.passes == 3
    assert load.count == 3 * len(read(str(load.path)))


def test_words_follow_zipf():
    from collections import Counter

    from bench.loads import sentences

    counts = Counter(word for line in sentences(5_000) for word in line.split())
    # the second word comes 2 ** 1.1 = 2.14 times less often than the first
    assert 1.9 < counts["w0"] / counts["w1"] < 2.4
