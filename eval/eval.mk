# Evaluation of recall. The public sets are not part of the repository: docs/evaluation.md says
# where to get them. SETS is a folder of sets, OUT where the reports go.
SETS ?= ../shared/eval
OUT ?= dist/eval

.PHONY: eval eval-own golden

eval: build ## evaluate recall on every set in SETS: OUT/summary.md and a report a set
	@bin/hark eval run --set $(SETS) --out $(OUT)

eval-own: build ## evaluate recall on the project's own sets, which are in the repository
	@bin/hark eval run --set testdata/eval --out $(OUT)/own

golden: ## record the goldens of the project's own sets anew; read the difference
	$(GO) test ./eval -run 'TestGolden$$' -update
	@git diff --stat -- testdata/eval
