"""Cells of every kind of statement, with ops in them, and cells that fail in every way."""

#: Each is run twice, with marks and without; every op stands on one line.
PROGRAMS = {
    "statements": """
        x = op(); y = op()
        z = x + op() if y else op()
        (a, *b), c = [op(), op(), op()], op()
        del a
        z""",
    "a silenced value": """
        op()
        x = op();""",
    "a call that returns in the middle of a line": """
        def f(x):
            y = op()
            return y + op()
        y = f(1) + op() + f(2) + op()
        y""",
    "calls of calls": """
        def inner(x):
            op()
            return op()
        def outer(x):
            y = inner(x) + op()
            return inner(y) + op()
        outer(outer(1)) + op()""",
    "functions that are never made": """
        def forever():
            while True:
                op()
            return lambda: op()
        late = (lambda: op()) if False else op()""",
    "recursion": """
        def count(n):
            op()
            below = count(n - 1) + op() if n else op()
            return below
        count(4) + op()""",
    "loops": """
        total = 0
        for i in range(op() + 2):
            if i == 1:
                op(); continue
            total += op()
        else:
            op()
        while total < 4 and op():
            total += op()
            if total == 3:
                break
        [op() for i in range(3)], {op() for i in range(2)}, {i: op() for i in range(2)}, sum(op() for i in range(2))""",
    "an iterator that works between two rounds": """
        class Batches:
            def __iter__(self):
                self.left = 3
                return self
            def __next__(self):
                self.left -= 1
                if not self.left:
                    raise StopIteration
                return op()
        for batch in Batches():
            op()
        list(Batches()), op()""",
    "conditions": """
        def is_positive(x):
            op()
            return x > 0
        if is_positive(-1) and op():
            op()
        elif is_positive(1) and op():
            op()
        else:
            op()""",
    "exceptions": """
        def fail(x):
            op()
            raise ValueError(x)
        try:
            op()
            fail(1)
        except ValueError as error:
            op()
            text = str(error)
        else:
            op()
        finally:
            op()
        text""",
    "an exception swallowed below": """
        class Lazy:
            def __getattr__(self, name):
                op()
                raise AttributeError(name)
        hasattr(Lazy(), "x"), op()""",
    "exception groups": """
        try:
            op()
            raise ExceptionGroup("two", [ValueError(1), TypeError(2)])
        except* ValueError as group:
            op()
        except* TypeError:
            op()""",
    "return through finally": """
        def f():
            try:
                op()
                return op()
            finally:
                op()
        f() + op()""",
    "context managers": """
        from contextlib import contextmanager
        @contextmanager
        def scope():
            op()
            try:
                yield op()
            finally:
                op()
        with scope() as x, scope():
            op()
        def f():
            with scope():
                return op()
        f() + op()""",
    "generators": """
        def numbers(n):
            for i in range(n):
                op()
                got = yield i + op()
                op()
            return op()
        def delegating(n):
            last = yield from numbers(n)
            op()
            yield last
        x = next(numbers(2)) + op()
        list(delegating(2)), op()
        for number in numbers(3):
            op()
        generator = numbers(3)
        next(generator); op()
        generator.send(1); op()
        try:
            generator.throw(KeyError)
        except KeyError:
            op()
        generator.close()
        op()""",
    "decorators": """
        import functools
        def twice(f):
            op()
            @functools.wraps(f)
            def g(*args):
                return f(*args) + f(*args) + op()
            return g
        @twice
        @twice
        def work(x):
            "Works."
            return op()
        work(1), work.__doc__, work.__name__""",
    "a docstring": '''
        def f():
            "Says something."
        def g():
            """Says more."""
            return op()
        class C:
            "Holds something."
            x = op()
        f.__doc__, g.__doc__, C.__doc__, f(), g()''',
    "classes": """
        from dataclasses import dataclass
        from enum import Enum
        class Colour(Enum):
            RED = 1
            BLUE = op() + 1
        @dataclass
        class Point:
            x: int
            y: int = 2
            @property
            def sum(self):
                return self.x + self.y + op()
            @staticmethod
            def make():
                return Point(op())
            @classmethod
            def zero(cls):
                return cls(0, op())
        class Child(Point):
            __hidden = op()
            def total(self):
                return super().sum + self.__hidden + op()
        list(Colour), Point.make().sum + op(), Child(1).total(), Child.zero(), Child.__annotations__""",
    "a namespace of the class's own": """
        class Everything(dict):
            def __missing__(self, name):
                if name.startswith("_") or name == "op":
                    raise KeyError(name)
                return name
        class Meta(type):
            @classmethod
            def __prepare__(cls, name, bases):
                return Everything()
            def __new__(cls, name, bases, namespace):
                return type.__new__(cls, name, bases, dict(namespace))
        class Made(metaclass=Meta):
            first = undefined
            second = op()
        Made.first, Made.second""",
    "global and nonlocal": """
        count = 0
        def outer():
            global count
            mine = 0
            def inner():
                nonlocal mine
                global count
                mine += op(); count += op()
            inner(); inner()
            return mine
        outer(), count, op()""",
    "match": """
        def kind(x):
            match x:
                case {"a": int(n)} if op():
                    return op()
                case [first, *rest]:
                    op()
                    return first
                case _:
                    op()
        kind({"a": 1}), kind([1, 2]), kind(None), op()""",
    "await": """
        import asyncio
        async def child(n):
            op()
            await asyncio.sleep(0)
            return op()
        async def parent():
            x = await child(1) + op()
            ys = await asyncio.gather(child(1), child(2))
            op()
            async for y in agen():
                op()
            async with scope():
                op()
            return [await child(n) async for n in agen()] and x + op()
        async def agen():
            for i in range(2):
                op()
                yield op()
        class scope:
            async def __aenter__(self):
                op()
            async def __aexit__(self, *error):
                op()
        result = await parent() + op()
        result""",
    "a future": """
        from __future__ import annotations
        def f(x: Undefined) -> Undefined:
            return op()
        f(1), f.__annotations__""",
    "f-strings, lambdas, walrus": """
        double = lambda x: x + op()
        if (n := double(1) + op()):
            text = f"{op()} {n!r:>5} {double(2)}"
        text""",
    "threads": """
        from threading import Thread
        def work(n):
            for i in range(n):
                op()
            op()
        threads = [Thread(target=work, args=(3,)) for i in range(3)]
        for thread in threads:
            thread.start()
            op()
        for thread in threads:
            thread.join()
        op()""",
    "its own source": """
        import inspect
        def f(x):
            # A comment.
            return (x +
                    1)
        inspect.getsource(f), inspect.signature(f), f.__code__.co_firstlineno, f.__code__.co_varnames, f(1)""",
    "locals": """
        def f(x):
            y = 1
            return locals()
        f(2), sorted(name for name in globals() if "mark" in name or "mtprof" in name), sorted(dir())[-1]""",
    "a warning of the compiler": """
        x = op()
        def f():
            return x is 1
        f()""",
    "a deep stack of blocks": """
        def f():
            for a in range(1):
                with open("/dev/null"):
                    try:
                        while op():
                            if op():
                                for b in range(1):
                                    return op()
                    finally:
                        op()
        f() + op()""",
}

FAILURES = {
    "in a line": """
        x = 1
        y = x / 0
        z = 2""",
    "in a function": """
        def f(x):
            y = x
            return (y +
                    "a")
        def g():
            return f(1)
        g()""",
    "while another is handled": """
        def f():
            try:
                {}["a"]
            except KeyError:
                raise ValueError("b")
        f()""",
    "from another": """
        try:
            int("x")
        except ValueError as error:
            raise RuntimeError("no") from error""",
    "in a generator": """
        def g():
            yield 1
            yield 1 / 0
        list(g())""",
    "in a coroutine": """
        async def f():
            await g()
        async def g():
            raise KeyError(1)
        await f()""",
    "in a class": """
        class C:
            x = 1
            y = undefined""",
    "of syntax, in a part": """
        x = 1
        return x""",
    "of syntax": """
        x = 1
        def f(:
            pass""",
    "of a late global": """
        def f():
            x = 1
            global x""",
    "an exit": """
        raise SystemExit(3)""",
    "an interrupt": """
        def f():
            raise KeyboardInterrupt
        f()""",
}
