# The OpenClaw plugin: included by the Makefile of the repository, whose root is the working directory.
#
#   make plugin         the installable package in dist/, with the program for this machine in it
#   make test-plugin    types and unit tests of the plugin, also against the daemon of this checkout
#   make test-host      the real OpenClaw with the package installed, driven by .ci/host
#
# PLUGIN_PLATFORMS="linux/amd64 darwin/arm64" puts the program for more systems into the package.

GO ?= go
PLUGIN_PLATFORMS ?= $(shell $(GO) env GOOS)/$(shell $(GO) env GOARCH)

plugin/node_modules: plugin/package.json plugin/package-lock.json
	cd plugin && npm ci --no-audit --no-fund --silent
	touch $@

.PHONY: plugin-binaries plugin-bundle plugin test-plugin test-host

plugin-binaries:
	@rm -rf plugin/bin
	@for platform in $(PLUGIN_PLATFORMS); do \
	  os=$${platform%/*} arch=$${platform#*/} ext=; [ $$os = windows ] && ext=.exe; \
	  CGO_ENABLED=0 GOOS=$$os GOARCH=$$arch $(GO) build -trimpath -ldflags '$(LDFLAGS)' -o plugin/bin/$$os-$$arch/hark$$ext ./cmd/hark || exit 1; \
	done

plugin-bundle: plugin/node_modules
	cd plugin && node build.mjs

plugin: plugin-binaries plugin-bundle ## the installable package for OpenClaw, in dist/
	@mkdir -p dist && cp LICENSE plugin/LICENSE
	cd plugin && npm pack --silent --pack-destination ../dist

test-plugin: build plugin/node_modules ## the plugin's tests
	cd plugin && npm run --silent check && HARK_BINARY=$(CURDIR)/bin/hark npm test --silent

test-host: plugin ## the real OpenClaw with the plugin in it
	bash .ci/host/run.sh
