# ruff: noqa: RUF001  full-width signs mean themselves here
"""Texts as models write them, and what people must see (SPEC CHAN-3)."""

from __future__ import annotations

ADDRESSES = r"""
https://example.com/api/_v1_
https://example.com/_a_/_b_
https://example.com/a_b_c?x_y=1&_z_=2
https://example.com/**/x
https://example.com/*
https://example.com/*/a/*
https://en.wikipedia.org/wiki/Foo_(bar)_baz
(https://example.com/_a_)
See https://example.com/_a_, https://example.com/_b_.
"https://example.com/_a_"
http://localhost:8080/__health__
https://example.com/~user/~~x~~
https://example.com/?q=*a*&r=*b*
https://example.com/a*b*c
https://example.com/path\_x\_y
ftp://files.example.org/_pub_/*.iso
postgresql://user:p*ss*word@host_a_:5432/db
redis://:_pw_@host/0
s3://bucket/_tmp_/*.parquet
git+ssh://git@example.com/_x_/y.git
www.example.com/_a_/_b_
example.com/api/_v1_
_foo_@example.com
@_user_name_
https://example.com/#_anchor_
https://example.com/a&copy;b
ssh <user@host>
Ann <ann@example.org>
""".strip().splitlines()

PATHS = r"""
C:\_temp\*.log
C:\Users\ann\_old_\*.*
D:\data\*_final_*.xlsx
C:\*\*.dll
\\server
\\server\share\_x_
\\?\C:\_x_
.\_build_\*.py
..\_old_\*.bak
%TEMP%\_cache_\*.tmp
~\_notes_
$env:TEMP\_x_
logs\*.log
/api/_v1_/users/_id_
/var/log/*.log
/usr/lib/*/lib*.so
~/_notes_/*.md
./_build_/x
src/_private_/index.ts
__init__.py
src/__init__.py
__tests__/a.test.ts
__main__
__name__ == "__main__"
obj.__dict__
self.__init__(x)
__init__
__pycache__
snake_case_name
_private_name
_private_name_
_snake_case and other_
file_name_v2_final.txt
_id
a__b__c
UPPER_CASE_NAME
__FILE__ and __LINE__
#ifdef __linux__
__func__ and __VA_ARGS__
__my_name__ and __MY_NAME__
nginx:_latest_ and redis:_edge_
user:*name*:x
.github/workflows/_deploy_.yml
""".strip().splitlines()

GLOBS = r"""
_config.yml, __init__.py, .env_*
_test.go and foo_test.go and test_*
_t('x') and t_('y') and foo_
_foo and test_*, _bar
**kwargs and 2*
__x and foo_
*_* and ^_^ and >_<
$* and $_ and *args
_* and *_ and x_
x ~~~a~~~ and ~~~
***a* and **b*
*.py
*.py and *.txt
*.py,*.txt
*.py, *.txt, *.md
(*.py|*.txt)
src/**/*.ts
**/*.py
**/*.py and **/*.js
**/node_modules/**
src/**/test/**/x
test_*.py
test_*.py and bench_*.py
*_test.go, *_bench.go
*.tar.*
*.min.js and *.min.css
*.{js,ts}*
find . -name "*foo*"
find . -name '*foo*' -o -name '*bar*'
"*foo*"
ls /tmp/*log*
rm *foo*.log
for f in *; do echo *$f*; done
app-*.log, app-*.gz
log-*-2024 and log-*-2025
data-*-*.csv
*/5
*/5 * * * *
0 */2 * * *
0,30 8-18/*2 * * *
* * * * *
* * * * * /usr/bin/backup
* 9 * * 1-5
*/10 9-17 * * MON-FRI
SELECT * FROM t
SELECT a.*, b.* FROM a, b
COUNT(*) and COUNT(*)
f(*) g(*)
[*] and [*]
'*' or '*'
"*" or "*"
def f(*args, **kwargs)
f(*a, *b)
dict(**a, **b)
dict(**a,**b)
print(*a, *b, sep="")
char *s, *t;
char* a, char* b
int **p, **q;
/* a comment */
/** a doc */
-*- coding: utf-8 -*-
*-algebra and C*
5* hotel, 4* hotel
price* (*without tax)
a **** b
a * b and * c
{"_id_": 1, "*": 2}
{"__typename__": "_x_"}
""".strip().splitlines()

PATTERNS = r"""
\d+\.\d+
^\d{4}-\d{2}$
\w+@\w+\.\w+
[a-z]*[0-9]*
.*foo.*
^.*$ and .*
(a|b)*c*
a.*b.*c
^foo\.bar$
^foo\.
example\.com
\.py$
\bword\b
(\d+)\.(\d+)
[^\s]+\.txt
foo\(bar\)
s/\_/\-/g
\$HOME
\/\*.*\*\/
grep "a\|b" x
sed s/\//\\/g
a\\b
\\
\n and \t
"a\nb\\c"
\x1b[0m
\u00e9
[a-z](foo)
[0-9](abc)
handlers[name](event)
a[i](x.y)
[](int x) { return x; }
[&](int)
[=]()
arr[0] and arr[1]
[INFO]: started
[ERROR]: disk
[1]: https://example.com
[x]
[x]y
docker run \
echo a \ b
100\
\o/
¯\_(ツ)_/¯
""".strip().splitlines()

FORMULAS = r"""
2*3*4
a*b*c
a * b * c
x**2 + y**2
x**n + y**n
2**3**4
x ** 2 ** 3
(a)*(b)*(c)
3*(4+5)*2
(a+b)**n + (c+d)**n
(a+b)**2*(c+d)**2
a_1 + a_2
a_{1}*b_{2}*c
x_i * y_i
$x^*$ and $y^*$
$a_1 + b_2$
$f*g*h$
$$\sum_{i=1}^n x_i$$
\frac{a}{b}
\(x^2 + y^2\)
\[ E = mc^2 \]
\[x_1\]
\text{a\_b}
\int_0^1 f(x)\,dx
\alpha_1 \cdot \beta_2
A* and B*
n!*(m!)*k
5 * 3 = 15
1 < 2 and 3 > 2
a < b && c > d
a <= b <> c
x *= 2; y *= 3
*p++ = *q++
&a, &b
a ~ b ~ c
~5 and ~6
~~5 or ~~6
5 + 3
O(n*log(n))*k
面积=长*宽*高
宽*2*高
长*宽*高=体积
5|6|7
|x| + |y|
a^2 + b^2
""".strip().splitlines()

NUMBERS = r"""
1.5
1.000,50 €
3.14 and 2.71
1969
+49 89 1234
12:30
2024-01-02
1/2
#1 and #2
#hashtag
$5 and $6
50 % of 100 %
-5 °C
1.1. Scope
v1.2.3_beta_4
1,000,000
0x_ff_00
1_000_000
10. 20. 30
""".strip().splitlines()

CJK = r"""
用户_名称_表
，*注意
价格*（含税
变量_a_和_b_
東京*大阪
ファイル*.txt と *.csv
第1章 * 第2章
한글_이름_표
""".strip().splitlines()

HTML = r"""
std::vector<int>
std::map<int, std::string>
<std::vector>
List<String> and Map<K, V>
vector<b> v;
Foo<s>
Array<i>
if (a < b) return c > d;
a<b>c
<div>
<div class="x">y</div>
<script>alert(1)</script>
<unknown>x</unknown>
<b>open
closed</b>
<b>a <i>b</b> c</i>
<b></b>
<b><i></b>
<your name>
<T>
<!-- note -->
<?php echo 1; ?>
cat <file >other
x <- y -> z
<sup>not plain!</sup>
<a href="javascript:x">y</a>
<a>y</a>
<pre></pre>
the <details> tag
text <details> x </details>
<details> and </details>
Close it with </details>
Use <b> and </b>
Use <code> and </code> tags
Tag <b> makes bold, tag </b> ends it
the <p> tag and the </p> tag
use the <br> tag
Use <br> or <br/> to break
List<i> x; List</i>
Array<s> a; Array</s>
return <p>Hi {name}</p>;
<div><b>x</b></div>
<a><b>c</b></a>
<ul><li><b>a</b></li><li><i>b</i></li></ul>
<note><to>Tove</to><b>x</b></note>
<my-element><p>x</p></my-element>
<x:a><code>y</code></x:a>
&nosuch; and &
AT&T
""".strip().splitlines()

LINE_SIGNS = r"""
>=5
>5 and <6
><
>_<
>:(
>.<
>-5
>/dev/null 2>&1
>>> print(1)
>>> f(*a)
+ 3
+ added line
+49 89 1234
#
##
+
=
""".strip().splitlines()

AS_WRITTEN = {
    "line signs": LINE_SIGNS,
    "addresses": ADDRESSES,
    "paths": PATHS,
    "globs": GLOBS,
    "patterns": PATTERNS,
    "formulas": FORMULAS,
    "numbers": NUMBERS,
    "CJK": CJK,
    "HTML": HTML,
}
"""What has no markup, although CommonMark would find some."""

MARKUP = {
    # Emphasis.
    "***a** b*": "<b><i>a</i></b><i> b</i>",
    "***a* b**": "<b><i>a</i> b</b>",
    "**a *b***": "<b>a <i>b</i></b>",
    "**a _b_**": "<b>a <i>b</i></b>",
    "**Use *args here**": "<b>Use *args here</b>",
    "**Pourquoi ?** *Oui !*": "<b>Pourquoi ?</b> <i>Oui !</i>",
    "*50 $* and **60 $**": "<i>50 $</i> and <b>60 $</b>",
    "_config.yml_ and _e.g. this_": "<i>config.yml</i> and <i>e.g. this</i>",
    "_see test(s)_ and _(so)_": "<i>see test(s)</i> and <i>(so)</i>",
    "**a**": "<b>a</b>",
    "*a*": "<i>a</i>",
    "__a__": "<b>a</b>",
    "_a_": "<i>a</i>",
    "~~a~~": "<s>a</s>",
    "***a***": "<b><i>a</i></b>",
    "**a *b* c**": "<b>a <i>b</i> c</b>",
    "*a **b** c*": "<i>a </i><b><i>b</i></b><i> c</i>",
    "**a** and *b*": "<b>a</b> and <i>b</i>",
    "(*a*) [**b**] {c}": "(<i>a</i>) [<b>b</b>] {c}",
    "\"**a**\" and '**b**'": "\"<b>a</b>\" and '<b>b</b>'",
    "**a**, **b**; **c**.": "<b>a</b>, <b>b</b>; <b>c</b>.",
    "*a*, *b*; *c*.": "<i>a</i>, <i>b</i>; <i>c</i>.",
    "*a*?! *b*…": "<i>a</i>?! <i>b</i>…",
    "**Note:** text": "<b>Note:</b> text",
    "**Hinweis:**Text": "<b>Hinweis:</b>Text",
    "**Note**: text": "<b>Note</b>: text",
    "**Really?**Yes": "<b>Really?</b>Yes",
    "**Step 1 (easy)**Begin": "<b>Step 1 (easy)</b>Begin",
    "**1) First** x": "<b>1) First</b> x",
    "**1. First:** x": "<b>1. First:</b> x",
    "**5 %** more": "<b>5 %</b> more",
    "**-5 °C** and *-3 °C*": "<b>-5 °C</b> and <i>-3 °C</i>",
    "**>50** and **~5**": "<b>&gt;50</b> and <b>~5</b>",
    "**$5** and *€6*": "<b>$5</b> and <i>€6</i>",
    "**/help** shows": "<b>/help</b> shows",
    "**--verbose** and **-v**": "<b>--verbose</b> and <b>-v</b>",
    "**.env** and **.gitignore**": "<b>.env</b> and <b>.gitignore</b>",
    "**@ann** *#tag*": "<b>@ann</b> <i>#tag</i>",
    "**Yes**/**No**": "<b>Yes</b>/<b>No</b>",
    "**Ctrl**+**C**": "<b>Ctrl</b>+<b>C</b>",
    "**a**=**b**": "<b>a</b>=<b>b</b>",
    "a — **b** — *c*": "a — <b>b</b> — <i>c</i>",
    "a—**b**—*c*—d": "a—<b>b</b>—<i>c</i>—d",
    "„**Wort**“ »*x*«": "„<b>Wort</b>“ »<i>x</i>«",
    "un**frigging**real": "un<b>frigging</b>real",
    "**API**s and **Wichtig**e": "<b>API</b>s and <b>Wichtig</b>e",
    "*Ann*'s and **Bob**'s": "<i>Ann</i>'s and <b>Bob</b>'s",
    "✅**Done**✅": "✅<b>Done</b>✅",
    "⚠️ **Achtung** ⚠️": "⚠️ <b>Achtung</b> ⚠️",
    "1️⃣**One**": "1️⃣<b>One</b>",
    "**👍🏽 ok**": "<b>👍🏽 ok</b>",
    "**bold\nover lines**": "<b>bold\nover lines</b>",
    "*Hello,* she said. *Done now.*": "<i>Hello,</i> she said. <i>Done now.</i>",
    "**snake_case** and *a_b*": "<b>snake_case</b> and <i>a_b</i>",
    "_use snake_case here_": "<i>use snake_case here</i>",
    "**2*3*4**": "<b>2*3*4</b>",
    "**x**2": "**x**2",
    "`a`**b**": "<code>a</code><b>b</b>",
    "**a** `b*c*d`": "<b>a</b> <code>b*c*d</code>",
    "Ünï **cödé** ñ": "Ünï <b>cödé</b> ñ",
    "это **важно:**текст": "это <b>важно:</b>текст",
    "l'*amour* et l'**amour**": "l'<i>amour</i> et l'<b>amour</b>",
    "about **30**%, **5**%.": "about <b>30</b>%, <b>5</b>%.",
    "و**آخر** ه*ذا*": "و<b>آخر</b> ه<i>ذا</i>",
    "ה**חשוב** ו*עוד*": "ה<b>חשוב</b> ו<i>עוד</i>",
    "**مهم:**نص": "<b>مهم:</b>نص",
    # Full-width signs and scripts without blanks.
    "这是**重点：**内容": "这是<b>重点：</b>内容",
    "这是**重点**内容": "这是<b>重点</b>内容",
    "他说**“你好”**然后": "他说<b>“你好”</b>然后",
    "**「重点」**です": "<b>「重点」</b>です",
    "**（注）**说明": "<b>（注）</b>说明",
    "《**书名**》": "《<b>书名</b>》",
    "是*重*点": "是<i>重</i>点",
    "**注意！**请看": "<b>注意！</b>请看",
    "**第一步。**然后**第二步。**完": "<b>第一步。</b>然后<b>第二步。</b>完",
    "価格は**1,000円**です": "価格は<b>1,000円</b>です",
    "これは**太字（テスト）**です": "これは<b>太字（テスト）</b>です",
    "**중요**합니다": "<b>중요</b>합니다",
    "**“중요”**합니다": "<b>“중요”</b>합니다",
    "**링크(url)**를": "<b>링크(url)</b>를",
    "คำ**สำคัญ**ครับ": "คำ<b>สำคัญ</b>ครับ",
    "~~删除~~内容": "<s>删除</s>内容",
    "请看**https://example.com/_a_**谢谢": "请看<b>https://example.com/_a_</b>谢谢",
    "请看https://example.com/_a_，**重点**": "请看https://example.com/_a_，<b>重点</b>",
    # What stays as written, within markup.
    "**https://example.com/api/_v1_**": "<b>https://example.com/api/_v1_</b>",
    "*https://example.com/_a_*": "<i>https://example.com/_a_</i>",
    "_https://example.com/a_": "<i>https://example.com/a</i>",
    "_see https://example.com/a_": "<i>see https://example.com/a</i>",
    "**See https://example.com/_a_**": "<b>See https://example.com/_a_</b>",
    "**See https://example.com/_a_.**": "<b>See https://example.com/_a_.</b>",
    "~~https://example.com/_a_~~": "<s>https://example.com/_a_</s>",
    "**C:\\_temp\\*.log**": "<b>C:\\_temp\\*.log</b>",
    "**Look at C:\\_temp\\x**": "<b>Look at C:\\_temp\\x</b>",
    "**\\d+\\.\\d+**": "<b>\\d+\\.\\d+</b>",
    "- https://example.com/_a_\n- `_b_`": "• https://example.com/_a_\n• <code>_b_</code>",
    "> C:\\_temp\\*.log": "<blockquote>C:\\_temp\\*.log</blockquote>",
    "# f(*) g(*)": "<b>f(*) g(*)</b>",
    "|a|\n|-|\n|*.py,*.txt|": "<pre>a\n──────────\n*.py,*.txt</pre>",
    "[a](https://e.org).**b**": '<a href="https://e.org">a</a>.<b>b</b>',
    "[_a_](https://e.org/_b_)": '<a href="https://e.org/_b_"><i>a</i></a>',
    "[f(*)](https://e.org)": '<a href="https://e.org">f(*)</a>',
    "请看[这里](https://e.org)吧": '请看<a href="https://e.org">这里</a>吧',
    "<https://e.org/_a_>": '<a href="https://e.org/_a_">https://e.org/_a_</a>',
    "[a]\n\n[a]: https://e.org": '<a href="https://e.org">a</a>',
    # Images are links.
    "![a *b*](https://e.org)": '<a href="https://e.org">a b</a>',
    "a ![](https://e.org) b": 'a <a href="https://e.org">image</a> b',
    "[![a](https://e.org/b)](https://e.org)": '<a href="https://e.org">a</a>',
    "[![](https://e.org/b) c](https://e.org)": '<a href="https://e.org">image c</a>',
    "see [](https://e.org)": 'see <a href="https://e.org">https://e.org</a>',
    # Escapes.
    "\\*a\\*": "*a*",
    "5 \\* 3": "5 * 3",
    "snake\\_case": "snake_case",
    "my\\_file.txt": "my_file.txt",
    "\\# a": "# a",
    "1969\\. A year": "1969. A year",
    "\\- a": "- a",
    "\\> a": "&gt; a",
    "\\`a\\`": "`a`",
    "\\[a\\](https://e.org)": "[a](https://e.org)",
    "costs \\$5": "costs $5",
    "Done\\!": "Done!",
    "a\\\nb *c*": "a\nb <i>c</i>",
    "&copy; &lt;b&gt;": "© &lt;b&gt;",
    # Numbers of lists.
    "1969. Moon landing\n1989. Fall of the Wall": "1969. Moon landing\n1989. Fall of the Wall",
    "1. a\n1. b\n1. c": "1. a\n2. b\n3. c",
    "1. a\n3. b": "1. a\n3. b",
    "3. a\n2. b\n1. c": "3. a\n2. b\n1. c",
    "2. a\n2. b\n3. c": "2. a\n2. b\n3. c",
    "1) a\n5) b": "1) a\n5) b",
    "007. a\n008. b": "007. a\n008. b",
    "0. a\n1. b": "0. a\n1. b",
    "01. a\n01. b": "01. a\n02. b",
    "1. a\n   4. b\n   9. c\n2. d": "1. a\n    4. b\n    9. c\n2. d",
    "10. a\n\n20. b": "10. a\n\n20. b",
    "1969. **a**\n\ntext\n\n1989. b": "1969. <b>a</b>\n\ntext\n\n1989. b",
    # Signs at the beginning of a line.
    "- + adds\n- - subtracts\n- * multiplies": "• + adds\n• - subtracts\n• * multiplies",
    "- > is greater\n- # is a comment": "• &gt; is greater\n• # is a comment",
    "- +\n- -\n- *\n- #\n- >": "• +\n• -\n• *\n• #\n• &gt;",
    "1. + a\n2. - b": "1. + a\n2. - b",
    "> - - a": "<blockquote>• - a</blockquote>",
    "- > a\n  > b": "<blockquote>• a\nb</blockquote>",
    "Sum: 5\n+ 3\n= 8": "Sum: 5\n+ 3\n= 8",
    "5\n- 3\n= 2": "5\n- 3\n= 2",
    "x = a\n  + b\n  - c": "x = a\n+ b\n- c",
    "+ a\n+ b": "+ a\n+ b",
    "* a\n  + b\n  + c\n* d": "• a\n    • b\n    • c\n• d",
    "a:\n- b\n- c": "a:\n\n• b\n• c",
    "It has:\n- 3 c": "It has:\n\n• 3 c",
    "- a 1\n- 2 b": "• a 1\n• 2 b",
    "> a\n> - b": "<blockquote>a\n\n• b</blockquote>",
    ">a": "<blockquote>a</blockquote>",
    ">>> f()\n1\n>>> g()": "&gt;&gt;&gt; f()\n1\n&gt;&gt;&gt; g()",
    "Total\n-----\n5": "<b>Total</b>\n\n5",
    # Fences.
    "Run:```\na *b* c\n```\n*d*": "Run:\n\n<pre>a *b* c</pre>\n\n<i>d</i>",
    "> Run: ```\n> a*b*\n> ```": "<blockquote>Run:\n\n<pre>a*b*</pre></blockquote>",
    "1. Run: ```\n   a*b*\n   ```\n2. b": "1. Run:\n<pre>a*b*</pre>\n2. b",
    "- a\n  - Run: ```\n    a\n    ```\n- b": "• a\n    • Run:\n<pre>a</pre>\n• b",
    "It ends with ```\n\n~~~\na\n~~~": "It ends with ```\n\n<pre>a</pre>",
    "Or with ```\n\n```c\na\n```\nb": (
        'Or with ```\n\n<pre><code class="language-c">a</code></pre>\n\nb'
    ),
    "```\na ```\nb\n```": "<pre>a ```\nb</pre>",
    "```\n~~~\na ```py\n```": "<pre>~~~\na ```py</pre>",
    "Run\n```sh npm i *x*\n```": "Run\n\n<pre>sh npm i *x*</pre>",
    # Bars in tables.
    "|a|b|\n|-|-|\n|`x|y`|z|": "<pre>a    b\n───  ─\nx|y  z</pre>",
    "|a|b|\n|-|-|\n|``x|`y``|z|": "<pre>a     b\n────  ─\nx|`y  z</pre>",
    "|a|b|\n|-|-|\n|x || y|z|": "<pre>a       b\n──────  ─\nx || y  z</pre>",
    "|a|b|\n|-|-|\n|x \\| y|z|": "<pre>a      b\n─────  ─\nx | y  z</pre>",
    "|a|b|c|\n|-|-|-|\n|x||z|": "<pre>a  b  c\n─  ─  ─\nx     z</pre>",
    "|a|b|\n|-|-|\n|1|2|3|\n|4|": "<pre>a  b\n─  ───\n1  2|3\n4</pre>",
    "a|b\n-|-\n1|2|3|4": "<pre>a  b\n─  ─────\n1  2|3|4</pre>",
    "|a|b|\n|-|-|\n|`|tick|": "<pre>a  b\n─  ────\n`  tick</pre>",
    "|a|b|\n|-|-|\n|1|2|\n**after**": "<pre>a  b\n─  ─\n1  2</pre>\n\n<b>after</b>",
    "|a|b|\n|-|-|\nafter": "<pre>a  b\n─  ─</pre>\n\nafter",
    "> |a|\n> |-|\n> |1|\n> b": "<blockquote><pre>a\n─\n1</pre>\n\nb</blockquote>",
    # HTML.
    "a<br>b<br/>c<br />d": "a\nb\nc\nd",
    "a <br>\nb": "a\nb",
    "<b>a</b> <strong>b</strong>": "<b>a</b> <b>b</b>",
    "<i>a</i> <em>b</em> <u>c</u>": "<i>a</i> <i>b</i> <i>c</i>",
    "<s>a</s> <del>b</del> <strike>c</strike>": "<s>a</s> <s>b</s> <s>c</s>",
    "<B>a</B>": "<b>a</b>",
    "<code>a*b*c</code>": "<code>a*b*c</code>",
    "<code>&lt;b&gt;</code>": "<code>&lt;b&gt;</code>",
    '<pre><code class="language-py">a</code></pre>': "<code>a</code>",
    "<kbd>Ctrl</kbd>": "<code>Ctrl</code>",
    "`<b>` and `</b>`": "<code>&lt;b&gt;</code> and <code>&lt;/b&gt;</code>",
    "<b>a *b* c</b>": "<b>a <i>b</i> c</b>",
    "**a <i>b</i>**": "<b>a <i>b</i></b>",
    "<b><b>a</b></b>": "<b>a</b>",
    "H<sub>2</sub>O, x<sup>2</sup>": "H₂O, x²",
    '<a href="https://e.org/_a_">b</a>': '<a href="https://e.org/_a_">b</a>',
    '<span style="color:red">a</span> <small>b</small>': "a b",
    "<details>\n<summary>More</summary>\n\nText\n\n</details>": "<b>More</b>\n\nText",
    "<details><summary>More</summary>\nText</details>": "<b>More</b>\nText",
    "<h2>a</h2>\nb": "<b>a</b>\nb",
    "<b> a </b>\nb": "<b> a </b>\nb",
    "<p>\na\n</p>\nb": "a\nb",
    "<p>a</p><p>b</p>": "a\nb",
    "<b>List<String></b>": "<b>List&lt;String&gt;</b>",
    "<b>a</b> <x>b</x>": "<b>a</b> &lt;x&gt;b&lt;/x&gt;",
    "x <br> y": "x\ny",
    "10<sup>−3</sup>": "10⁻³",
    "<a href=https://e.org/_a_>b</a>": '<a href="https://e.org/_a_">b</a>',
    "**std::vector<int>**": "<b>std::vector&lt;int&gt;</b>",
}
"""What Telegram must be sent."""

FRAGMENTS = r"""
abc xyz A1 42 foo.bar é 重点 （注） 😀 a_b x*y 2*3 3.5 5% $x *.py a.* ** * _ __ ~~
f(*) g(*) C:\_t\*.log \d+\.\d+ \srv \(x\) https://e.org/_a_ /a/_b_ **/*.ts a[i] a<b
"*" '*' (*) [*] -*- a* b* 5* x** *) (* _) (_ .* , . ; : ! ? - — + = / # @ ^ { } ( )
**a** *b* _c_ **重：**点 ~~d~~ *e f* **a:**b <T> &x
|| | ~ ~5 ~/.c __init__ __FILE__ _x_y *args, **kw **2 2**10 $x_1$ $P $_G @a_b_ #t_ {{_a_}}
>= -> << >>> + - > # 1. 2) [x] [1] [^1] ![ !a `a*b` `` ` <i>x x<sup>a
و**آخر** ה*ד* l'*a* 30**%** **5**% *$5* x:*y* ** p*** ____ \d/ "_a_" '**b**' f**k 4*
"""
"""Pieces of random texts."""
